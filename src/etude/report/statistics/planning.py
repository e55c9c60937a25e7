"""What more of the same would show: the seeds that it takes to see a difference, the best of so many trials."""

import math
from bisect import bisect_left
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from etude.report.statistics.scores import Scores

_ENDLESS = 10**9  # seeds


def power(difference: float, deviation: float, seeds: int, alpha: float = 0.05, test_set: float = 0.0) -> float:
    """The chance that a two-sided test at `alpha` sees a true difference (Cohen 1988, chapter 2).

    The variance of the difference is v = 2 deviation² / n + test_set². The statistic then follows the noncentral t with
    noncentrality |difference| / sqrt(v) and Satterthwaite's degrees of freedom, (n - 1) v² / (2 (deviation² / n)²).
    Without `test_set` these are 2 (n - 1) and the test is the two-sample t test. With it, the test is `combined_test`;
    with three seeds, whose degrees of freedom are a matter of luck, the chance is told up to 0.05 too high.

    Args:
        difference: the true one, in the metric's unit.
        deviation: of a single run over seeds, the standard deviation in the same unit, alike in both arms.
        seeds: n, of each arm; two or more.
        alpha: the rate of false alarms.
        test_set: the standard deviation of the difference over test sets, with seeds without end; no seed lessens it.
    """
    if not (deviation > 0 and seeds >= 2):
        raise ValueError(f"power needs two seeds and a spread between them: {seeds} seeds, deviation {deviation}")
    of_run = deviation**2 / seeds
    variance = 2 * of_run + test_set**2
    freedom = (seeds - 1) * variance**2 / (2 * of_run**2)
    noncentrality = abs(difference) / math.sqrt(variance)
    critical = stats.t.isf(alpha / 2, freedom)
    other_side = stats.nct.cdf(-critical, freedom, noncentrality)  # scipy has no number where next to nothing is left
    seen = stats.nct.sf(critical, freedom, noncentrality) + (0.0 if math.isnan(other_side) else other_side)
    return float(seen)


def seeds_needed(
    difference: float, deviation: float, wanted: float = 0.8, alpha: float = 0.05, test_set: float = 0.0
) -> int | None:
    """The fewest seeds an arm, in both arms, that show a true difference with the power `wanted`, a share.

    What an arm already has may be taken off: nothing here depends on which seeds they are. The deviation usually
    comes from few seeds (`pooled_deviation`) and is itself uncertain: three seeds an arm leave it anywhere between 0.6
    and 2.9 times what they show. So this is a plan, not a promise. Other arguments as for `power`.

    Returns:
        Two or more; None where the test set is too small, so that no number of seeds would do.
    """
    if not (math.isfinite(difference) and difference != 0 and 0 < wanted < 1):
        raise ValueError(f"no number of seeds shows a difference of {difference} with power {wanted}")
    if power(difference, deviation, _ENDLESS, alpha, test_set) < wanted:
        return None
    enough = range(2, _ENDLESS)
    return enough[bisect_left(enough, wanted, key=lambda seeds: power(difference, deviation, seeds, alpha, test_set))]


@dataclass(frozen=True, eq=False)
class ExpectedBest:
    """The expected best validation score as a curve."""

    trials: NDArray[np.int64]  # (N,) n = 1 to N, the number of trials that were made
    expected: NDArray[np.float64]  # (N,) the mean of the best of n, in the metric's unit
    deviation: NDArray[np.float64]  # (N,) the standard deviation of the best of n: how much luck n trials leave


def expected_best(search: Scores, lower_is_better: bool = False) -> ExpectedBest:
    """The best of n trials drawn as these N were, for each n up to N (Dodge et al. 2019, section 3).

    The trials must have been drawn at random and independently of each other; a searcher that learns from earlier
    trials breaks that. The distribution of scores is taken as these N show it, so that
    P(best of n <= i-th smallest) = (i / N)^n: exact, without sampling. Near n = N the curve is too low, for N
    trials cannot show what is better than their best (Tang et al. 2020).
    """
    sign = -1.0 if lower_is_better else 1.0
    ranked = np.sort(sign * np.asarray(search.values, dtype=np.float64))
    trials = np.arange(1, len(ranked) + 1)
    at_most = np.linspace(0, 1, len(ranked) + 1) ** trials[:, None]
    chance = np.diff(at_most, axis=1)  # (N, N): of each score to be the best of n; scores that tie share theirs
    expected = chance @ ranked
    variance = (chance * (ranked - expected[:, None]) ** 2).sum(axis=1)
    return ExpectedBest(trials, sign * expected, np.sqrt(variance))
