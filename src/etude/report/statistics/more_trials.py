"""What more trials would change: the best of twice as many, and how often half of them would order two arms otherwise.

The first is extrapolated, as no trial says what a better one would find: expected_best gives the best of n / 4, n / 2
and n of the same trials, the last doubling is taken to be to the next as the one before it was to the last, and no
doubling gains more than the one before it. For scores with a density of c (x - a)^(d - 1) at their best a, the gain of
each doubling is 2^(-1 / d) of the one before it.

The second extrapolates nothing: it looks back at the doubling from n / 2 to n, and is exact.
"""

from collections.abc import Sequence
from math import comb

import numpy as np

from etude.report.statistics.planning import expected_best
from etude.report.statistics.scores import Scores

FEWEST = 4
"""Trials without which nothing can be said of more."""


def best_of_twice(search: Scores, *, lower_is_better: bool = False) -> float:
    """Extrapolate the best of twice as many trials.

    Args:
        search: the scores of all trials, which were drawn at random.
        lower_is_better: whether the lowest score is the best.

    Raises:
        ValueError: there are too few.
    """
    n = len(search.values)
    if n < FEWEST:
        raise ValueError(f"{search.arm}: it takes {FEWEST} trials, not {n}")
    curve = expected_best(search, lower_is_better)
    quarter, half, best = (float(np.interp(m, curve.trials, curve.expected)) for m in (n / 4, n / 2, n))
    before, last = half - quarter, best - half
    return best + last * (min(last / before, 1.0) if before else 0.0)


def other_order_in_half(first: Sequence[float], second: Sequence[float]) -> float | None:
    """Compute in which share of all halves of the trials two arms have another order than in all trials.

    Args:
        first: the scores of one arm, the lower the better; infinite where it has none.
        second: those of the other arm, of the same draws in the same order.

    Returns:
        The share among the halves in which both have a score; None if there is no such half. A tie is an order of its
        own.
    """
    a, b = np.asarray(first, dtype=np.float64), np.asarray(second, dtype=np.float64)
    if len(a) != len(b):
        raise ValueError(f"arms share their draws: {len(a)}, {len(b)}")
    n, size, known, other = len(a), len(a) // 2, 0, 0
    place = np.arange(n)
    for i in np.flatnonzero(np.isfinite(a)):
        for j in np.flatnonzero(np.isfinite(b)):
            # halves in which i is the best of the one and j of the other, of equal ones the first
            better = (a < a[i]) | ((a == a[i]) & (place < i)) | (b < b[j]) | ((b == b[j]) & (place < j))
            chosen = {int(i), int(j)}
            if not (better[i] or better[j] or len(chosen) > size):
                ways = comb(n - int(better.sum()) - len(chosen), size - len(chosen))
                known += ways
                other += ways * bool(np.sign(a[i] - b[j]) != np.sign(a.min() - b.min()))
    return other / known if known else None
