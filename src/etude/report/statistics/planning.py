"""Plan experiments: the power of a test, the number of seeds it needs, and the expected best of n trials."""

import math
from bisect import bisect_left
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import special, stats

from etude.report.statistics.scores import Scores

_MAX_SEEDS = 10**9


def power(difference: float, deviation: float, seeds: int, alpha: float = 0.05, test_set: float = 0.0) -> float:
    """Compute the power of a two-sided test at `alpha` for a true difference (Cohen 1988, chapter 2).

    The variance of the difference is v = 2 deviation² / n + test_set². The statistic then follows the noncentral t with
    noncentrality |difference| / sqrt(v) and Satterthwaite's degrees of freedom, (n - 1) v² / (2 (deviation² / n)²).
    Without `test_set` these are 2 (n - 1) and the test is the two-sample t test. With it, the test is `combined_test`;
    with three seeds, where its degrees of freedom vary a lot, the result is up to 0.05 too high.

    Args:
        difference: the true difference, in the metric's unit.
        deviation: the standard deviation of a single run over seeds, in the same unit, equal in both arms.
        seeds: n, of each arm; two or more.
        alpha: the false positive rate.
        test_set: the standard deviation of the difference over test sets, in the limit of many seeds.

    Raises:
        ValueError: there are fewer than two seeds, or the deviation is not above zero.
    """
    if not (deviation > 0 and seeds >= 2):
        raise ValueError(f"power needs two seeds and a spread between them: {seeds} seeds, deviation {deviation}")
    of_run = deviation**2 / seeds
    variance = 2 * of_run + test_set**2
    freedom = (seeds - 1) * variance**2 / (2 * of_run**2)
    noncentrality = abs(difference) / math.sqrt(variance)
    critical = stats.t.isf(alpha / 2, freedom)
    other_side = stats.nct.cdf(-critical, freedom, noncentrality)  # scipy returns NaN if it is tiny
    seen = stats.nct.sf(critical, freedom, noncentrality) + (0.0 if math.isnan(other_side) else other_side)
    return float(seen)


def seeds_needed(
    difference: float, deviation: float, wanted: float = 0.8, alpha: float = 0.05, test_set: float = 0.0
) -> int | None:
    """Find the fewest seeds per arm with which a test has the power `wanted`, between 0 and 1.

    Seeds that an arm already has count among them. The result is only a plan: the deviation usually comes from few
    seeds (`pooled_deviation`) and is itself uncertain. With three seeds per arm the true one may lie anywhere between
    0.6 and 2.9 times the estimate. Other arguments as in `power`.

    Returns:
        Two or more; None if the test set is so small that no number of seeds is enough.

    Raises:
        ValueError: the difference is zero or not finite, or `wanted` is not between 0 and 1.
    """
    if not (math.isfinite(difference) and difference != 0 and 0 < wanted < 1):
        raise ValueError(f"no number of seeds shows a difference of {difference} with power {wanted}")
    if power(difference, deviation, _MAX_SEEDS, alpha, test_set) < wanted:
        return None
    enough = range(2, _MAX_SEEDS)
    return enough[bisect_left(enough, wanted, key=lambda seeds: power(difference, deviation, seeds, alpha, test_set))]


@dataclass(frozen=True, eq=False)
class ExpectedBest:
    """The expected best validation score of n trials, as a curve over n."""

    trials: NDArray[np.int64]  # (N,) n = 1 to N, the number of trials
    expected: NDArray[np.float64]  # (N,) the mean of the best of n, in the metric's unit
    deviation: NDArray[np.float64]  # (N,) the standard deviation of the best of n; far too small from n = N / 2 on


def expected_best(search: Scores, lower_is_better: bool = False) -> ExpectedBest:
    """Compute the expected best of n trials (Dodge et al. 2019), for each n up to the N of `search`, without bias.

    The trials must have been drawn at random and independently of each other, so not by a searcher that learns from
    earlier trials. It is the mean over all choices of n of the N trials, which needs no sampling: P(best of n <= i-th
    smallest) = C(i, n) / C(N, n) (Tang et al. 2020). The first estimator, (i / N)^n, draws with replacement, and is too
    pessimistic for n near N. There this one rests on few choices, at n = N on a single one.
    """
    sign = -1.0 if lower_is_better else 1.0
    ranked = np.sort(sign * np.asarray(search.values, dtype=np.float64))
    trials = np.arange(1, len(ranked) + 1)
    ways = _log_choices(np.arange(len(ranked) + 1), trials[:, None])
    chance = np.diff(np.exp(ways - ways[:, -1:]), axis=1)  # (N, N): the chance of each score to be the best of n
    expected = chance @ ranked
    variance = (chance * (ranked - expected[:, None]) ** 2).sum(axis=1)
    return ExpectedBest(trials, sign * expected, np.sqrt(variance))


def _log_choices(of: NDArray[np.int64], n: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return the logarithm of the number of choices of n things out of `of`; minus infinity if there are too few."""
    enough = np.maximum(of - n, 0)
    log: NDArray[np.float64] = special.gammaln(of + 1.0) - special.gammaln(n + 1.0) - special.gammaln(enough + 1.0)
    return np.where(of >= n, log, -np.inf)
