"""Where the heads look: how widely and how far on the whole, and in a few sentences, as pictures."""

from collections import defaultdict
from collections.abc import Iterator
from typing import Any

import numpy as np
import torch
from torch import Tensor

from etude.data.tokenizer import PAD
from etude.inspect.analyze.heads import KINDS, Place, watch_heads
from etude.inspect.analyze.subject import Subject, Text

_LONGEST = 20  # tokens on either side, so that a picture can be read
_CELLS = 90_000  # weights in all maps together: about 200 KB

Head = tuple[str, int, int]  # kind, layer, head; both from 1


@torch.no_grad()
def measure_spreads(subject: Subject, text: Text) -> dict[Head, dict[str, float]]:
    """For each head its "entropy" and "distance", means over all real tokens that look.

    Targets are fed as in training, the reference one token after another. Source and target share no axis: from the
    decoder to the encoder a small distance says that the head goes through both in step.
    """
    sums: dict[tuple[str, int], Tensor] = defaultdict(lambda: torch.zeros(2, 1, dtype=torch.float64))
    tokens: dict[str, int] = defaultdict(int)
    for batch in text.batches:
        source, target = batch.source_mask, batch.target_out != PAD
        looking = {"encoder": source, "decoder": target, "cross": target}

        def see(place: Place, weights: Tensor, looking: dict[str, Tensor] = looking) -> None:
            real = looking[place.kind][:, None].expand(weights.shape[:3])
            both = torch.stack([entropy(weights), distance(weights)]) * real
            sums[place.kind, place.layer] = sums[place.kind, place.layer] + both.sum(dim=(1, 3)).cpu()

        with watch_heads(subject.model, see):
            subject.model(batch.source, batch.source_mask, batch.target_in)
        for kind, real in looking.items():
            tokens[kind] += int(real.sum())
    return {
        (kind, layer, head): {"entropy": wide / tokens[kind], "distance": far / tokens[kind]}
        for (kind, layer), both in sums.items()
        for head, (wide, far) in enumerate(both.T.tolist(), start=1)
    }


def entropy(weights: Tensor) -> Tensor:
    """(B, H, T, S) to (B, H, T), in nats: 0 where all weight lies on one key, ln n where n keys share it evenly."""
    return torch.special.entr(weights).sum(dim=-1)


def distance(weights: Tensor) -> Tensor:
    """(B, H, T, S) to (B, H, T): the mean of |i - j| from query i to the keys j it looks at, by their weights."""
    queries, keys = (torch.arange(n, device=weights.device) for n in weights.shape[-2:])
    return (weights * (queries[:, None] - keys).abs()).sum(dim=-1)


@torch.no_grad()
def collect_maps(subject: Subject, text: Text, count: int) -> Iterator[dict[str, Any]]:
    """Up to `count` sentences, of different lengths, with their tokens and weights.

    The choice depends on the text alone, so that models can be compared on the same sentences. A model with many heads
    goes without those whose maps would make the file too large.
    """
    room = _CELLS
    for row in _choose_rows(text, count):
        batch = subject.text([(text.sources[row], text.references[row])]).batches[0]
        seen: dict[str, list[Tensor]] = {kind: [] for kind in KINDS}

        def see(place: Place, weights: Tensor, seen: dict[str, list[Tensor]] = seen) -> None:
            seen[place.kind].append(weights[0])

        with watch_heads(subject.model, see):
            subject.model(batch.source, batch.source_mask, batch.target_in)
        cells = sum(weights.numel() for layers in seen.values() for weights in layers)
        if cells > room:
            continue
        room -= cells
        reads = batch.target_in[0].tolist() if seen["decoder"] or seen["cross"] else []
        sides = {"source": batch.source[0].tolist(), "target": reads}
        yield {
            **{side: subject.tokenizer.subwords(tokens) for side, tokens in sides.items()},
            **{kind: [_per_cent(weights) for weights in layers] for kind, layers in seen.items()},
        }


def _choose_rows(text: Text, count: int) -> list[int]:
    """Rows short enough for a picture, from the longest down, evenly spaced in the order of their lengths."""
    longest = np.maximum(text.source_lengths, text.target_lengths)
    short = [row for row in np.argsort(longest, kind="stable").tolist() if longest[row] <= _LONGEST]
    return [short[-1 - n * len(short) // count] for n in range(min(count, len(short)))]


def _per_cent(weights: Tensor) -> list[Any]:
    """Weights of any shape as whole numbers from 0 to 100."""
    rounded: list[Any] = (100 * weights).round().int().tolist()
    return rounded
