"""How many seeds it takes to see a difference."""

import math

from scipy import stats


def power(difference: float, deviation: float, seeds: int, alpha: float = 0.05) -> float:
    """The chance that a two-sided two-sample t test at `alpha` sees a true difference (Cohen 1988, chapter 2).

    Under that difference the statistic follows the noncentral t with 2 (n - 1) degrees of freedom and noncentrality
    |difference| / (deviation sqrt(2 / n)).

    Args:
        difference: the true one, in the metric's unit.
        deviation: the standard deviation of a single run over seeds, in the same unit, alike in both arms.
        seeds: n, of each arm.
        alpha: the rate of false alarms.

    Raises:
        ValueError: the deviation is not above 0, or an arm has fewer than two seeds.
    """
    if not (deviation > 0 and seeds >= 2):
        raise ValueError(f"power needs two seeds and a spread between them: {seeds} seeds, deviation {deviation}")
    freedom = 2 * (seeds - 1)
    noncentrality = abs(difference) / (deviation * math.sqrt(2 / seeds))
    critical = stats.t.isf(alpha / 2, freedom)
    seen = stats.nct.sf(critical, freedom, noncentrality) + stats.nct.cdf(-critical, freedom, noncentrality)
    return float(seen)


def seeds_needed(difference: float, deviation: float, wanted: float = 0.8, alpha: float = 0.05) -> int:
    """The fewest seeds an arm, in both arms, that show a true difference with the power `wanted`.

    What an arm already has may be taken off: nothing here depends on which seeds they are. The deviation usually
    comes from few seeds (`pooled_deviation`) and is itself uncertain: three seeds an arm leave it anywhere between 0.6
    and 2.9 times what they show. So this is a plan, not a promise; and no number of seeds makes the test set larger.

    Args: as for `power`; `wanted` is a share.

    Raises:
        ValueError: no number of seeds would do, or `power` refuses.
    """
    if not (math.isfinite(difference) and difference != 0 and 0 < wanted < 1):
        raise ValueError(f"no number of seeds shows a difference of {difference} with power {wanted}")
    low, high = 1, 2  # too few, and perhaps enough
    while power(difference, deviation, high, alpha) < wanted:
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        if power(difference, deviation, middle, alpha) < wanted:
            low = middle
        else:
            high = middle
    return high
