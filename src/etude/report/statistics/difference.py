"""Compare two arms over seeds: would other seeds show the difference as well?

The tests are unpaired, but for arms that share their trainings and are only decoded otherwise (`paired_test`), although
runs of two arms may have the same seeds. A seed fixes the order of the batches, but
not their effect on a changed architecture, so scores with equal seeds need not be correlated. Pairing would also halve
the degrees of freedom (three seeds: t(2) = 4.30 instead of t(4) = 2.78). If scores with equal seeds are positively
correlated, the unpaired test is conservative.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from scipy import special

from etude.report.statistics.scores import Interval, Scores


@dataclass(frozen=True)
class Comparison:
    """The result of a test of the difference between two arms."""

    difference: float  # arm minus base, in the metric's unit
    interval: Interval | None  # of the difference; None if unknown, see `why_not`
    p: float | None  # two-sided; None if unknown, see `why_not`
    why_not: str = ""  # a phrase: why there is no test; empty if there is one


def welch(arm: Scores, base: Scores, level: float = 0.95) -> Comparison:
    """Test a difference by Welch's t test (Welch 1947), which does not assume equal variances.

    It keeps its level with two or three seeds, where it is conservative. It generalises to other seeds on the same
    sentences; `combined_test` also generalises to other sentences.
    """
    difference = arm.mean - base.mean
    if unknown := unknown_difference(arm, base):
        return Comparison(difference, None, None, unknown)
    parts = [(side.variance / side.seeds, side.seeds - 1) for side in (arm, base)]
    return t_test(difference, *add_variances(parts), level)


def paired_test(arm: Scores, base: Scores) -> Comparison:
    """Test the mean difference of two arms that share their trainings, seed by seed, by a t test of the differences.

    The variance over trainings is in both arms and cancels out, so that a small effect of decoding is seen.
    """
    gaps = differences_by_seed(arm, base)
    if why_not := unknown_gap(arm, base):
        return Comparison(gaps.mean, None, None, why_not)
    return t_test(gaps.mean, gaps.variance / gaps.seeds, gaps.seeds - 1)


def differences_by_seed(arm: Scores, base: Scores) -> Scores:
    """Return the arm's score less the base's, for each seed of two arms that share their trainings.

    Differences that are equal but for the rounding of the scores are made equal, as 91.2 - 90.9 and 88.4 - 88.1.

    Raises:
        ValueError: they have different numbers of seeds.
    """
    gaps = [ours - theirs for ours, theirs in zip(arm.values, base.values, strict=True)]
    rounding = 1e-12 * max(map(abs, (*arm.values, *base.values)))
    return Scores(arm.arm, gaps[:1] * len(gaps) if max(gaps) - min(gaps) < rounding else gaps)


def unknown_gap(arm: Scores, base: Scores) -> str:
    """Say why arms that share their trainings cannot be compared; an empty string if they can."""
    gaps = differences_by_seed(arm, base)
    if arm.seeds > 1 and gaps.unknown_spread():
        alike = "the difference from it" if gaps.mean else "the score"
        return f"the training is that of {base.arm}, and {alike} the same at each seed"
    return gaps.unknown_spread()


def add_variances(parts: Sequence[tuple[float, float]]) -> tuple[float, float]:
    """Return the variance of the difference of two means, and its degrees of freedom by Satterthwaite (1946).

    v = v1 + v2 with v² / (v1² / f1 + v2² / f2) degrees of freedom, for `parts` (v1, f1) and (v2, f2).
    """
    variance = sum(part for part, _ in parts)
    return variance, variance**2 / sum(part**2 / freedom for part, freedom in parts)


def t_test(difference: float, variance: float, freedom: float, level: float = 0.95) -> Comparison:
    """Test a difference by Student's t, given its estimated variance and degrees of freedom."""
    error = math.sqrt(variance)
    p = 2 * special.stdtr(freedom, -abs(difference) / error)  # what `stats.t` calls, in a three-hundredth of its time
    reach = float(special.stdtrit(freedom, (1 + level) / 2)) * error
    return Comparison(difference, Interval(difference - reach, difference + reach), float(p))


def hedges_g(arm: Scores, base: Scores) -> float | None:
    """Compute the difference in standard deviations of a single run, corrected for the bias of few seeds.

    g = J(m) (mean - mean of base) / s, with s pooled over both arms, m = n + n_base - 2 and
    J(m) = Γ(m / 2) / (sqrt(m / 2) Γ((m - 1) / 2)) (Hedges 1981, equation 6e). J(4) = 0.80.

    Returns:
        g, without a unit; None if the variance over seeds is unknown.
    """
    if unknown_difference(arm, base):
        return None
    freedom = arm.seeds + base.seeds - 2
    correction = math.exp(special.gammaln(freedom / 2) - special.gammaln((freedom - 1) / 2)) / math.sqrt(freedom / 2)
    return correction * (arm.mean - base.mean) / pooled_deviation(arm, base)


def pooled_deviation(arm: Scores, base: Scores) -> float:
    """Compute the standard deviation of a single run, pooled over both arms; each needs two seeds."""
    return math.sqrt(_pooled_variance([arm, base])[0])


def pooled(groups: Sequence[Scores]) -> tuple[float, int] | None:
    """Compute the standard deviation of a single run, pooled over arms, and its degrees of freedom.

    Returns:
        None if no arm has two seeds, or all of them scored the same within each arm.
    """
    several = [group for group in groups if group.seeds > 1]
    variance, freedom = _pooled_variance(several) if several else (0.0, 0)
    return (math.sqrt(variance), freedom) if variance > 0 else None


def _pooled_variance(groups: Sequence[Scores]) -> tuple[float, int]:
    """Return the pooled variance over seeds and its degrees of freedom."""
    freedom = sum(group.seeds - 1 for group in groups)
    return sum((group.seeds - 1) * group.variance for group in groups) / freedom, freedom


def unknown_difference(arm: Scores, base: Scores) -> str:
    """Say why the arms cannot be compared over seeds; an empty string if they can.

    Each arm needs two seeds. The scores of one arm may be all equal, but not of both.
    """
    if min(arm.seeds, base.seeds) > 1 and (not arm.unknown_spread() or not base.unknown_spread()):
        return ""
    return arm.unknown_spread() if arm.seeds == 1 else base.unknown_spread()


def holm(p: Mapping[str, float]) -> dict[str, float]:
    """Adjust p values for multiple tests by Holm's step-down procedure (Holm 1979).

    If adjusted values below α are called significant, the chance of any false positive is at most α, however the arms
    depend on each other. The k-th smallest of m values is multiplied by m - k + 1, and no adjusted value is less than
    that of a smaller p. It is never less powerful than Bonferroni's correction m p, and needs no further assumption.

    Args:
        p: by arm; only arms that were tested, because each one makes the correction stronger.

    Raises:
        ValueError: a value is not between 0 and 1.
    """
    for arm, value in p.items():
        if not 0 <= value <= 1:
            raise ValueError(f"the p of {arm} is {value}, which is not a probability")
    adjusted: dict[str, float] = {}
    least = 0.0
    for rank, (arm, value) in enumerate(sorted(p.items(), key=lambda item: item[1])):
        least = max(least, min(1.0, (len(p) - rank) * value))
        adjusted[arm] = least
    return {arm: adjusted[arm] for arm in p}
