"""Draw from weighted choices, with the same results in every process and every version of Python.

Only `Random.random()` is called, because it is the only method whose values Python guarantees never to change.
"""

from bisect import bisect
from collections.abc import Iterable, Sequence
from itertools import accumulate
from random import Random
from typing import Generic, TypeVar

T = TypeVar("T")


def zipf(rank: int) -> float:
    """Compute the weight of the word at `rank` (0 is the most frequent) by the Zipf-Mandelbrot law."""
    return (rank + 2) ** -1.5


class Pool(Generic[T]):
    """Items to draw from, and their weights, which default to `zipf` of their rank."""

    def __init__(self, items: Sequence[T], weights: Iterable[float] | None = None) -> None:
        self.items = items
        self._cumulative = list(accumulate(map(zipf, range(len(items))) if weights is None else weights))

    def __len__(self) -> int:
        return len(self.items)

    def draw(self, random: Random) -> T:
        """Draw an item with a probability proportional to its weight."""
        point = random.random() * self._cumulative[-1]
        return self.items[bisect(self._cumulative, point, 0, len(self.items) - 1)]
