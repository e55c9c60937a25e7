"""Parts that depend on the layer that they are in."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from torch import nn


@dataclass(frozen=True)
class Place:
    """Where a part is in its stack.

    Attributes:
        layer: 0, 1, ..., N - 1.
        n_layers: N.
        before: how many parts of the same class come before it in the stack.
        first: the part that has this one's place in layer 0; there, the part itself.
        stack: "encoder" or "decoder".
    """

    layer: int
    n_layers: int
    before: int
    first: nn.Module
    stack: str = "encoder"


class Numbered(nn.Module):
    """Base class of a part that is told its place when its stack is built."""

    def set_place(self, place: Place) -> None:
        """Take what depends on the place; before, the part is as in the first of one layer."""


def number_layers(layers: nn.ModuleList, stack: str = "encoder") -> None:
    """Tell every `Numbered` part of a stack, "encoder" or "decoder", its place."""
    counts: Counter[type] = Counter()
    for n, layer in enumerate(layers):
        for name, part in layer.named_modules():
            if isinstance(part, Numbered):
                part.set_place(Place(n, len(layers), counts[type(part)], layers[0].get_submodule(name), stack))
                counts[type(part)] += 1


def check_pattern(pattern: Sequence[str], *words: str) -> list[str]:
    """Return a pattern of layers as a list.

    Raises:
        ValueError: it is empty, or has a word that is not one of `words`.
    """
    if not pattern or any(word not in words for word in pattern):
        raise ValueError(f"a pattern is a list of {' and '.join(words)}, such as [{', '.join(words)}], not {pattern}")
    return [*pattern]
