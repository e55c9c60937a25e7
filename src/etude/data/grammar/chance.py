"""Drawing from weighted choices, the same in every process and every version of Python.

Only `Random.random()` is ever called: it is the one method whose values Python promises never to change.
"""

from bisect import bisect
from collections.abc import Iterable, Sequence
from itertools import accumulate
from random import Random
from typing import Generic, TypeVar

T = TypeVar("T")


def zipf(rank: int) -> float:
    """The weight of the word at `rank` (0 is the most frequent): Zipf's law as Mandelbrot flattened its top."""
    return (rank + 2) ** -1.5


class Pool(Generic[T]):
    """Choices and how often each is drawn; weights fall by Zipf's law where none are given."""

    def __init__(self, items: Sequence[T], weights: Iterable[float] | None = None) -> None:
        self.items = items
        self._cumulative = list(accumulate(map(zipf, range(len(items))) if weights is None else weights))

    def __len__(self) -> int:
        return len(self.items)

    def draw(self, random: Random) -> T:
        """One of the items, in proportion to its weight."""
        point = random.random() * self._cumulative[-1]
        return self.items[bisect(self._cumulative, point, 0, len(self.items) - 1)]
