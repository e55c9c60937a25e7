"""Sentences a second in beam search, and what the cache of the decoder saves.

    python benchmarks/decoding.py [--beam 4] [--batch 64] [--rounds 3]

A Transformer with random weights (3+3 layers, d_model 256, d_ff 1024, 4 heads, vocabulary 8000) translates 200 sources
of about 14 random subwords. Random weights do not know when to end: every translation is made to have 14 pieces and
its end token, so both ways of decoding do the same work and give the same answers. "From scratch" runs the whole
model on every prefix again, as one would without a cache. The two take turns; the medians count.
"""

import argparse
import os
import statistics
import time
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from etude.config.compose import compose
from etude.config.resolve import resolve
from etude.data.tokenizer import EOS, PAD, UNK
from etude.decoding.beam import BeamSearch, Hypothesis
from etude.model.encoder_decoder import EncoderDecoder, State
from etude.tasks import build

SENTENCES = int(os.environ.get("ETUDE_BENCH_SENTENCES", "200"))  # fewer where it is only to run
PIECES, VOCAB_SIZE = 14, 8000


def random_transformer() -> EncoderDecoder:
    sizes = ["model.d_model=256", "model.d_ff=1024", "model.heads=4", "model.n_layers=3"]
    return build.model(resolve(compose(sizes)), VOCAB_SIZE).eval()


def ending_after(pieces: int, logits: Tensor, fed: int) -> Tensor:
    """`logits` that allow no end before `pieces` pieces, and nothing else then; `fed` counts the start token."""
    if fed <= pieces:
        logits[:, EOS] = -1e9
    else:
        logits[:, UNK:] = -1e9
    return logits


@dataclass
class CachedState:
    model_state: State
    fed: int = 0

    def reorder(self, rows: Tensor) -> None:
        self.model_state.reorder(rows)


class Cached:
    """The model as it is."""

    def __init__(self, model: EncoderDecoder) -> None:
        self.model = model

    def start(self, source: Tensor, source_mask: Tensor) -> CachedState:
        return CachedState(self.model.start(source, source_mask))

    def step(self, tokens: Tensor, state: CachedState) -> Tensor:
        state.fed += 1
        return ending_after(PIECES, self.model.step(tokens, state.model_state), state.fed)


@dataclass
class PrefixState:
    source: Tensor
    source_mask: Tensor
    prefix: Tensor

    def reorder(self, rows: Tensor) -> None:
        self.source, self.source_mask, self.prefix = self.source[rows], self.source_mask[rows], self.prefix[rows]


class FromScratch:
    """The model without its memory."""

    def __init__(self, model: EncoderDecoder) -> None:
        self.model = model

    def start(self, source: Tensor, source_mask: Tensor) -> PrefixState:
        return PrefixState(source, source_mask, source[:, :0])

    def step(self, tokens: Tensor, state: PrefixState) -> Tensor:
        state.prefix = torch.cat([state.prefix, tokens.unsqueeze(1)], dim=1)
        hidden = self.model.hidden(state.source, state.source_mask, state.prefix)[:, -1]
        return ending_after(PIECES, self.model.embedding.logits(hidden), state.prefix.size(1))


def batches(size: int) -> list[tuple[Tensor, Tensor]]:
    lengths = sorted((PIECES + 4 * torch.randn(SENTENCES)).round().clamp(min=3, max=40).int().tolist(), reverse=True)
    rows = [torch.cat([torch.randint(UNK + 1, VOCAB_SIZE, (length,)), torch.tensor([EOS])]) for length in lengths]
    sources = [
        torch.nn.utils.rnn.pad_sequence(rows[i : i + size], batch_first=True, padding_value=PAD)
        for i in range(0, SENTENCES, size)
    ]
    return [(source, source != PAD) for source in sources]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--beam", type=int, default=4)
    parser.add_argument("--batch", type=int, default=64, help="sentences")
    parser.add_argument("--rounds", type=int, default=3)
    arguments = parser.parse_args()

    torch.manual_seed(1)
    model, data = random_transformer(), batches(arguments.batch)
    search = BeamSearch(beam=arguments.beam, alpha=0.6, max_len_offset=50)
    ways: dict[str, Any] = {"cached": Cached(model), "from scratch": FromScratch(model)}
    seconds: dict[str, list[float]] = {name: [] for name in ways}
    answers: dict[str, list[tuple[int, ...]]] = {}
    for _ in range(arguments.rounds):
        for name, way in ways.items():
            started = time.perf_counter()
            found: list[list[Hypothesis]] = [h for source, mask in data for h in search(way, source, mask)]
            seconds[name].append(time.perf_counter() - started)
            answers[name] = [hypotheses[0].tokens for hypotheses in found]
    same = sum(a == b for a, b in zip(*answers.values(), strict=True))
    medians = {name: statistics.median(values) for name, values in seconds.items()}
    print(f"{SENTENCES} sentences, beam {arguments.beam}, batch {arguments.batch}, {torch.get_num_threads()} threads")
    for name, median in medians.items():
        print(f"{name:>12}: {SENTENCES / median:6.1f} sentences/s")
    print(f"the cache makes it {medians['from scratch'] / medians['cached']:.2f} times as fast; same answers: {same}")


if __name__ == "__main__":
    main()
