"""How many seeds it takes to see a difference."""

import math

from scipy import stats

_ENDLESS = 10**9  # seeds


def power(difference: float, deviation: float, seeds: int, alpha: float = 0.05, test_set: float = 0.0) -> float:
    """The chance that a two-sided test at `alpha` sees a true difference (Cohen 1988, chapter 2).

    The variance of the difference is v = 2 deviation² / n + test_set². The statistic then follows the noncentral t with
    noncentrality |difference| / sqrt(v) and Satterthwaite's degrees of freedom, (n - 1) v² / (2 (deviation² / n)²).
    Without `test_set` these are 2 (n - 1) and the test is the two-sample t test. With it, the test is `combined_test`;
    with three seeds, whose degrees of freedom are a matter of luck, the chance is told up to 0.05 too high.

    Args:
        difference: the true one, in the metric's unit.
        deviation: the standard deviation of a single run over seeds, in the same unit, alike in both arms.
        seeds: n, of each arm.
        alpha: the rate of false alarms.
        test_set: the standard deviation of the difference over test sets, with seeds without end; no seed lessens it.

    Raises:
        ValueError: the deviation is not above 0, or an arm has fewer than two seeds.
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
    """The fewest seeds an arm, in both arms, that show a true difference with the power `wanted`.

    What an arm already has may be taken off: nothing here depends on which seeds they are. The deviation usually
    comes from few seeds (`pooled_deviation`) and is itself uncertain: three seeds an arm leave it anywhere between 0.6
    and 2.9 times what they show. So this is a plan, not a promise.

    Args: as for `power`; `wanted` is a share.

    Returns:
        Two or more; None where the test set is too small, so that no number of seeds would do.

    Raises:
        ValueError: there is no difference to see, or `power` refuses.
    """
    if not (math.isfinite(difference) and difference != 0 and 0 < wanted < 1):
        raise ValueError(f"no number of seeds shows a difference of {difference} with power {wanted}")
    if power(difference, deviation, _ENDLESS, alpha, test_set) < wanted:
        return None
    low, high = 1, 2  # too few, and perhaps enough
    while power(difference, deviation, high, alpha, test_set) < wanted:
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        if power(difference, deviation, middle, alpha, test_set) < wanted:
            low = middle
        else:
            high = middle
    return high
