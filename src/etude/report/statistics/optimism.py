"""The best of n trials is optimistic: luck is in the score that it was chosen for, and fresh seeds take that back.

A score is truth and luck: that of trial i is μ_i + ε_i, where ε has the standard deviation of a seed. What the μ of the
best is, given its score, depends on how the μ of good trials are spread. This is estimated from the scores themselves
(empirical Bayes: Efron & Morris 1973), as a normal distribution of the better half; of the other trials only their
number counts, because a long tail of bad ones says nothing of the best. The interval integrates over what mean and
spread of that distribution may be (Carlin & Louis 2000, section 3.5).

200 simulated searches of 40 trials each: how often the 95 % interval holds the mean of three fresh seeds, and half its
width in standard deviations of a seed, for true scores of four shapes and several scales, in the same unit:

    scale                  0.3          1            2            5
    normal                 0.97  1.6    0.95  1.9    0.96  2.2    0.97  2.2
    uniform                0.98  1.6    0.98  1.9    0.97  2.1    0.94  2.2
    exponential, to worse  0.97  1.6    0.97  1.7    0.98  1.9    0.97  2.1
    t(2), folded to worse  0.96  1.6    0.97  1.8    0.97  2.0    0.93  2.2

Where trials differ by far more than seeds do, the score says all that there is, and no interval for the mean of k fresh
seeds can be narrower than ± 1.96 sqrt(1 + 1 / k): 2.3 for three.
"""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import special

from etude.report.statistics.scores import Interval, Scores

_FEWEST = 5  # scores that the distribution is fitted to, if there are so many
_GRID = 40  # points in each direction


@dataclass(frozen=True)
class BestOf:
    """What one of the best of n trials scores on fresh seeds.

    Attributes:
        score: what it was chosen for.
        expected: its expected score on fresh seeds.
        interval: of the mean over so many fresh seeds.
        seeds: how many.
        trials: n.
    """

    score: float
    expected: float
    interval: Interval
    seeds: int
    trials: int


def best_of(
    scores: Scores,
    deviation: float,
    seeds: int = 3,
    *,
    place: int = 0,
    averaged: int = 1,
    worse: int = 0,
    freedom: float = math.inf,
    lower_is_better: bool = False,
    level: float = 0.95,
) -> BestOf:
    """Estimate what the best of n trials, or the one at another place, scores on fresh seeds.

    Args:
        scores: of the trials that came to their end, in any order.
        deviation: the standard deviation over seeds of a single run, in the same unit.
        seeds: the fresh ones that are averaged.
        place: 0 for the best, 1 for the second.
        averaged: the seeds whose mean a score is.
        worse: how many further trials were given up, because they were worse.
        freedom: the degrees of freedom of the deviation, where it is estimated.
        lower_is_better: whether the lowest score is the best.
        level: of the interval.

    Raises:
        ValueError: the deviation is not above zero, or there are no fresh seeds.
    """
    if not (deviation > 0 and seeds >= 1):
        raise ValueError(f"a deviation above zero and a fresh seed are needed: {deviation}, {seeds}")
    sign = -1.0 if lower_is_better else 1.0
    ranked = np.sort(sign * np.asarray(scores.values, dtype=np.float64))[::-1]
    trials, chosen = len(ranked) + worse, float(ranked[place])
    kept = ranked[: min(len(ranked), max(_FEWEST, place + 1, math.ceil(trials / 2)))]
    parts = []
    for size in deviation / math.sqrt(averaged) * _scales(freedom):
        mean, spread, log = _posterior((kept - chosen) / size, trials)
        parts.append((size * mean, size * np.sqrt(spread**2 + averaged / seeds), log - len(kept) * math.log(size)))
    means, spreads, logs = (np.concatenate(some) for some in zip(*parts, strict=True))
    weights = np.exp(logs - logs.max())
    likely = weights > 1e-6
    means, spreads, weights = means[likely], spreads[likely], weights[likely] / weights[likely].sum()
    ends = sorted(chosen + _quantile(means, spreads, weights, at) for at in ((1 - level) / 2, (1 + level) / 2))
    low, high = sorted(sign * end for end in ends)
    return BestOf(sign * chosen, sign * (chosen + float(weights @ means)), Interval(low, high), seeds, trials)


def _scales(freedom: float) -> NDArray[np.float64]:
    """Return what the true deviation may be, as multiples of one estimated with so many degrees of freedom."""
    if math.isinf(freedom):
        return np.ones(1)
    return np.sqrt(freedom / special.chdtri(freedom, (np.arange(9) + 0.5) / 9))


def _posterior(
    kept: NDArray[np.float64], trials: int
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
    """Return the mean and the standard deviation of the true score of the chosen trial for each point of a grid of what
    the distribution of true scores may be, and the logarithm of how likely that is.

    Args:
        kept: the scores of the better trials, best first, less that of the chosen one, in deviations of a score.
        trials: how many there are in all, of which the others are worse than these.
    """
    reach = 3.0 + 4.0 * (kept[0] - kept[-1])
    tau = np.linspace(0, reach, _GRID)[:, None]
    total = np.sqrt(1 + tau**2)
    middle = kept[-1] + total * np.linspace(-5, 5, 2 * _GRID)
    away = (kept - middle[..., None]) / total[..., None]
    log = -0.5 * (away**2).sum(axis=-1) - len(kept) * np.log(total)
    log += (trials - len(kept)) * special.log_ndtr((kept[-1] - middle) / total)
    shrunk = 1 / total**2
    spread = np.sqrt(1 - shrunk) + 0 * middle
    return (shrunk * middle).ravel(), spread.ravel(), log.ravel()


def _quantile(
    means: NDArray[np.float64], spreads: NDArray[np.float64], weights: NDArray[np.float64], at: float
) -> float:
    """Return a quantile of a mixture of normal distributions."""
    low, high = float((means - 9 * spreads).min()), float((means + 9 * spreads).max())
    for _ in range(40):
        middle = (low + high) / 2
        below = float(weights @ special.ndtr((middle - means) / spreads))
        low, high = (middle, high) if below < at else (low, middle)
    return (low + high) / 2
