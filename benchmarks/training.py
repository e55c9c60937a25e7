"""One training step of ours against a hand-wired `torch.nn.Transformer` of the same size, on the same token ids.

    python benchmarks/training.py [--rounds 15] [--threads 2] [--tokens 2000] [--precision fp32|bf16]

3+3 layers, d_model 256, d_ff 1024, 4 heads, vocabulary 8000, dropout 0.1, label smoothing 0.1, Adam, tied embeddings;
a step is forward, loss, backward and update of about 2,000 target tokens. The two take turns, a round each, in one
process; the median of the rounds' ratios is the figure. `torch.nn.Transformer` drops attention weights and the
feed-forward's inner layer too; `--same-dropout` switches that off, so that both drop in the paper's two places alone.
"""

import argparse
import math
import statistics
import time
from collections.abc import Callable

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from etude.config.compose import compose
from etude.config.identity import resolve
from etude.data.tokenizer import BOS, PAD
from etude.tasks import build
from etude.training.allocator import keep_large_blocks
from etude.training.loss import LabelSmoothing
from etude.training.optimizer import adam

VOCABULARY, D_MODEL, D_FF, HEADS, LAYERS, DROPOUT, SMOOTHING = 8000, 256, 1024, 4, 3, 0.1, 0.1
Step = Callable[[Tensor, Tensor, Tensor, Tensor], float]


def ours() -> nn.Module:
    sizes = {"d_model": D_MODEL, "d_ff": D_FF, "heads": HEADS, "n_layers": LAYERS, "dropout": DROPOUT}
    return build.model(resolve(compose([f"model.{key}={value}" for key, value in sizes.items()])), VOCABULARY)


class HandWired(nn.Module):
    """What a tutorial does with `torch.nn.Transformer`."""

    def __init__(self, same_dropout: bool) -> None:
        super().__init__()
        self.embedding = nn.Embedding(VOCABULARY, D_MODEL)
        nn.init.normal_(self.embedding.weight, std=D_MODEL**-0.5)
        self.transformer = nn.Transformer(D_MODEL, HEADS, LAYERS, LAYERS, D_FF, DROPOUT, batch_first=True)
        self.transformer.encoder.norm = self.transformer.decoder.norm = None
        if same_dropout:
            for module in self.transformer.modules():
                if isinstance(module, nn.MultiheadAttention):
                    module.dropout = 0.0
                if isinstance(module, nn.TransformerEncoderLayer | nn.TransformerDecoderLayer):
                    module.dropout.p = 0.0
        self.dropout = nn.Dropout(DROPOUT)
        angles = torch.arange(512)[:, None] / 10_000 ** (torch.arange(0, D_MODEL, 2) / D_MODEL)
        self.register_buffer("positions", torch.stack([angles.sin(), angles.cos()], dim=-1).flatten(1))

    def forward(self, source: Tensor, source_mask: Tensor, target_in: Tensor) -> Tensor:
        x, y = (
            self.dropout(self.embedding(t) * math.sqrt(D_MODEL) + self.positions[: t.size(1)])
            for t in (source, target_in)
        )
        causal = nn.Transformer.generate_square_subsequent_mask(target_in.size(1))
        padding = ~source_mask
        hidden = self.transformer(
            x, y, tgt_mask=causal, tgt_is_causal=True, src_key_padding_mask=padding, memory_key_padding_mask=padding
        )
        return F.linear(hidden, self.embedding.weight)


def stepper(
    model: nn.Module, loss: Callable[[Tensor, Tensor], Tensor], optimizer: torch.optim.Optimizer, bf16: bool
) -> Step:
    def step(source: Tensor, source_mask: Tensor, target_in: Tensor, target_out: Tensor) -> float:
        started = time.perf_counter()
        with torch.autocast("cpu", torch.bfloat16, enabled=bf16):
            value = loss(model(source, source_mask, target_in), target_out) / (target_out != PAD).sum()
        value.backward()
        optimizer.step()
        optimizer.zero_grad()
        return time.perf_counter() - started

    return step


def batches(tokens: int) -> list[tuple[Tensor, Tensor, Tensor, Tensor]]:
    """Eight batches of lines of 8 to 30 pieces, about `tokens` target tokens each, a few of them padding."""
    generator = torch.Generator().manual_seed(1)
    made = []
    for length in (8, 11, 14, 17, 20, 23, 26, 30):
        rows = tokens // length
        source, target = torch.randint(4, VOCABULARY, (2, rows, length), generator=generator)
        lengths = torch.randint(length - 2, length + 1, (rows, 1), generator=generator)
        mask = torch.arange(length) < lengths
        target_in = torch.cat([torch.full((rows, 1), BOS), target[:, :-1]], dim=1)
        made.append((source.masked_fill(~mask, PAD), mask, target_in, target))
    return made


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--tokens", type=int, default=2000)
    parser.add_argument("--precision", choices=("fp32", "bf16"), default="fp32")
    parser.add_argument("--same-dropout", action="store_true")
    options = parser.parse_args()
    keep_large_blocks()
    torch.set_num_threads(options.threads)
    torch.manual_seed(1)
    bf16 = options.precision == "bf16"
    mine, theirs = ours(), HandWired(options.same_dropout)
    constants = {"beta1": 0.9, "beta2": 0.98, "eps": 1e-9}
    my_adam = adam(mine.parameters(), **constants)
    for group in my_adam.param_groups:
        group["lr"] = 1e-4  # ours leaves the rate to the schedule
    my_step = stepper(mine, LabelSmoothing(PAD, smoothing=SMOOTHING), my_adam, bf16)

    def plain_loss(logits: Tensor, targets: Tensor) -> Tensor:
        return F.cross_entropy(
            logits.flatten(0, 1), targets.flatten(), ignore_index=PAD, label_smoothing=SMOOTHING, reduction="sum"
        )

    plain_adam = torch.optim.Adam(theirs.parameters(), lr=1e-4, betas=(0.9, 0.98), eps=1e-9)
    their_step = stepper(theirs, plain_loss, plain_adam, bf16)
    data = batches(options.tokens)
    tokens = sum(int((target_out != PAD).sum()) for *_, target_out in data)
    for batch in data[:3]:
        my_step(*batch)
        their_step(*batch)
    rows = []
    for _ in range(options.rounds):
        mine_seconds = sum(my_step(*batch) for batch in data)
        their_seconds = sum(their_step(*batch) for batch in data)
        rows.append((tokens / mine_seconds, tokens / their_seconds))
    ratios = [a / b for a, b in rows]
    print(f"ours                 {statistics.median(a for a, _ in rows):8,.0f} target tokens/s")
    print(f"torch.nn.Transformer {statistics.median(b for _, b in rows):8,.0f} target tokens/s")
    print(f"ratio                {statistics.median(ratios):8.2f}  ({min(ratios):.2f} to {max(ratios):.2f})")


if __name__ == "__main__":
    main()
