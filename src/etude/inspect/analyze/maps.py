"""Where every head looks in a few sentences, to be drawn as pictures."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import torch
from torch import Tensor

from etude.inspect.analyze.heads import KINDS, Place, watch_heads
from etude.inspect.analyze.subject import Subject, Text

_LONGEST = 20  # pieces on either side, so that a picture can be read
_CELLS = 90_000  # weights in all maps together: about 200 KB


@torch.no_grad()
def collect_maps(subject: Subject, text: Text, count: int) -> Iterator[dict[str, Any]]:
    """Up to `count` sentences, of different lengths, with their pieces and weights.

    The choice depends on the text alone, so that models can be compared on the same sentences. A model with many heads
    goes without those whose maps would make the file too large.
    """
    room = _CELLS
    for row in _chosen(text, count):
        batch = subject.text([(text.sources[row], text.references[row])]).batches[0]
        seen: dict[str, list[Tensor]] = {kind: [] for kind in KINDS}

        def see(place: Place, weights: Tensor, seen: dict[str, list[Tensor]] = seen) -> None:
            seen[place.kind].append(weights[0])

        with watch_heads(subject.model, see):
            subject.model.hidden(batch.source, batch.source_mask, batch.target_in)
        cells = sum(weights.numel() for layers in seen.values() for weights in layers)
        if cells > room:
            continue
        room -= cells
        sides = {"source": batch.source, "target": batch.target_in}
        yield {
            **{side: subject.tokenizer.pieces(tokens[0].tolist()) for side, tokens in sides.items()},
            **{kind: [_per_cent(weights) for weights in layers] for kind, layers in seen.items()},
        }


def _chosen(text: Text, count: int) -> list[int]:
    """Rows short enough for a picture, from the longest down, evenly spaced in the order of their lengths."""
    longest = np.maximum(text.source_lengths, text.target_lengths)
    short = [row for row in np.argsort(longest, kind="stable").tolist() if longest[row] <= _LONGEST]
    return [short[-1 - n * len(short) // count] for n in range(min(count, len(short)))]


def _per_cent(weights: Tensor) -> list[Any]:
    """Weights of any shape as whole numbers from 0 to 100."""
    rounded: list[Any] = (100 * weights).round().int().tolist()
    return rounded
