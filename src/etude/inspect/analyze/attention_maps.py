"""Where the heads look: mean entropy and distance of their weights, and attention maps of a few sentences."""

from collections import defaultdict
from collections.abc import Iterator
from typing import Any

import numpy as np
import torch
from torch import Tensor

from etude.data.tokenizer import PAD
from etude.inspect.analyze.subject import Subject, Text
from etude.trained.heads import Place, attention_weights, has_sink, watch_heads

_LONGEST = 20  # tokens on either side of a map, so that it stays readable
_CELLS = 90_000  # weights in all maps together: about 200 KB

Head = tuple[str, int, int]  # kind, layer from 1, head from 1


@torch.no_grad()
def measure_spreads(subject: Subject, text: Text) -> dict[Head, dict[str, float]]:
    """Compute the "entropy" and "distance" of each head, means over all queries that are real tokens.

    The decoder reads the reference, as in training. Source and target share no axis: in cross-attention a small
    distance means that the head goes through both at the same pace.
    """
    sums: dict[tuple[str, int], Tensor] = defaultdict(lambda: torch.zeros(2, 1, dtype=torch.float64))
    tokens: dict[tuple[str, int], int] = defaultdict(int)  # of a layer that is applied several times, of each time
    for batch in text.batches:
        source, target = batch.source_mask, batch.target_out != PAD
        looking = {"encoder": source, "decoder": target, "cross": target}

        def see(place: Place, weights: Tensor, looking: dict[str, Tensor] = looking) -> None:
            if has_sink(place):  # of what it gives to tokens
                weights = weights / weights.sum(dim=-1, keepdim=True).clamp_min(torch.finfo(weights.dtype).tiny)
            real = looking[place.kind][:, None].expand(weights.shape[:3])
            both = torch.stack([entropy(weights), distance(weights)]) * real
            sums[place.kind, place.layer] = sums[place.kind, place.layer] + both.sum(dim=(1, 3)).cpu()
            tokens[place.kind, place.layer] += int(looking[place.kind].sum())

        with watch_heads(subject.model, see):
            subject.model(batch.source, batch.source_mask, batch.target_in)
    return {
        (kind, layer, head): {"entropy": wide / tokens[kind, layer], "distance": far / tokens[kind, layer]}
        for (kind, layer), both in sums.items()
        for head, (wide, far) in enumerate(both.T.tolist(), start=1)
    }


def entropy(weights: Tensor) -> Tensor:
    """Map weights (B, H, T, S) to entropies (B, H, T) in nats: 0 for all weight on one key, ln n for n equal keys."""
    return torch.special.entr(weights).sum(dim=-1)


def distance(weights: Tensor) -> Tensor:
    """Map weights (B, H, T, S) to (B, H, T): the weighted mean of |i - j| over the keys j of query i."""
    queries, keys = (torch.arange(n, device=weights.device) for n in weights.shape[-2:])
    return (weights * (queries[:, None] - keys).abs()).sum(dim=-1)


@torch.no_grad()
def collect_maps(subject: Subject, text: Text, count: int) -> Iterator[dict[str, Any]]:
    """Yield the tokens and attention weights of up to `count` sentences of different lengths.

    The choice depends on the text alone, so that models can be compared on the same sentences. Sentences whose maps
    would make the file too large, because the model has many heads, are skipped.
    """
    room = _CELLS
    for row in _choose_rows(text, count):
        batch = subject.text([(text.sources[row], text.references[row])]).batches[0]
        seen = attention_weights(subject.model, batch.source, batch.source_mask, batch.target_in)
        n, m = int(batch.source_mask[0].sum()), int((batch.target_out[0] != PAD).sum())
        sizes = {"encoder": (n, n), "decoder": (m, m), "cross": (m, n)}  # without the padding that a GPU is given
        seen = {
            kind: [weights[0, :, :rows, :columns] for weights in seen[kind]] for kind, (rows, columns) in sizes.items()
        }
        cells = sum(weights.numel() for layers in seen.values() for weights in layers)
        if cells > room:
            continue
        room -= cells
        reads = batch.target_in[0, :m].tolist() if seen["decoder"] or seen["cross"] else []
        sides = {"source": batch.source[0, :n].tolist(), "target": reads}
        yield {
            **{side: getattr(subject.tokenizer, side).subwords(tokens) for side, tokens in sides.items()},
            **{kind: [_per_cent(weights) for weights in layers] for kind, layers in seen.items()},
        }


def _choose_rows(text: Text, count: int) -> list[int]:
    """Choose rows short enough for a map, from the longest down, evenly spaced in the order of their lengths."""
    longest = np.maximum(text.source_lengths, text.target_lengths)
    short = [row for row in np.argsort(longest, kind="stable").tolist() if longest[row] <= _LONGEST]
    count = min(count, len(short))
    return [short[-1 - n * len(short) // count] for n in range(count)]


def _per_cent(weights: Tensor) -> list[Any]:
    """Convert weights of any shape to whole numbers from 0 to 100."""
    rounded: list[Any] = (100 * weights).round().int().tolist()
    return rounded
