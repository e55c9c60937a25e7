"""How much two ways of asking differ on the same sentences, and how much of that other sentences might undo."""

import math
from typing import Protocol

import numpy as np

_SAMPLES = 1000


class Measured(Protocol):
    """A corpus score made of sums over n sentences."""

    def __len__(self) -> int:
        """n."""

    def scores(self, times: np.ndarray) -> np.ndarray:
        """Of S samples in which each sentence occurs so many `times` (S, n): (S,)."""


Interval = tuple[float, float]


def score(measured: Measured) -> float:
    """Of every sentence once."""
    return float(measured.scores(np.ones((1, len(measured)), dtype=np.int64))[0])


def change(before: Measured, after: Measured, seed: int) -> tuple[float, Interval]:
    """How much the score rises from one to the other, and the 95 % interval of that over sentences.

    The interval holds the middle of a paired bootstrap (Koehn 2004): sentences are drawn with replacement, the same for
    both. The weights are taken as they are; another seed of training is another question. From one sentence there is no
    interval: it is NaN.

    Raises:
        ValueError: they are not of equally many sentences.
    """
    sentences = len(before)
    if sentences != len(after):
        raise ValueError(f"scores of {sentences} and {len(after)} sentences cannot be compared pair by pair")
    risen = score(after) - score(before)
    if sentences < 2:
        return risen, (math.nan, math.nan)
    times = np.random.default_rng(seed).multinomial(sentences, np.full(sentences, 1 / sentences), size=_SAMPLES)
    with np.errstate(invalid="ignore"):
        low, high = np.quantile(after.scores(times) - before.scores(times), [0.025, 0.975])
    return risen, (float(low), float(high))
