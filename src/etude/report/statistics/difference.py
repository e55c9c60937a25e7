"""Two arms compared at the level of seeds: would other seeds show the difference as well?

Unpaired, although runs of two arms may share their seed numbers. A seed fixes the order of the batches, not what a
changed architecture makes of them, so the scores of equal seeds need not go together; and pairing would halve the
degrees of freedom (three seeds: t(2) = 4.30 instead of t(4) = 2.78). Where equal seeds do go together, the unpaired
test errs on the safe side.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from scipy import special, stats

from etude.report.statistics.scores import Interval, Scores


@dataclass(frozen=True)
class Comparison:
    """What a test found."""

    difference: float  # arm minus base, in the metric's unit
    interval: Interval | None  # of the difference; None where `why_not` says why it is unknown
    p: float | None  # how often chance alone would show one at least as large in either direction; None as well
    why_not: str = ""  # a phrase, empty where there is a test


def welch(arm: Scores, base: Scores, level: float = 0.95) -> Comparison:
    """Welch's t test and interval (Welch 1947), which do not ask the two arms to vary alike.

    It holds its level with two or three seeds, where it is on the cautious side. It speaks of other seeds on these very
    sentences; `combined_test` speaks of other sentences too.
    """
    difference = arm.mean - base.mean
    if unknown := unknown_difference(arm, base):
        return Comparison(difference, None, None, unknown)
    parts = [(side.variance / side.seeds, side.seeds - 1) for side in (arm, base)]
    return t_test(difference, *add_variances(parts), level)


def add_variances(parts: Sequence[tuple[float, float]]) -> tuple[float, float]:
    """The variance of the difference of two means, and Satterthwaite's (1946) degrees of freedom.

    v = v1 + v2 with v² / (v1² / f1 + v2² / f2) degrees of freedom, for `parts` (v1, f1) and (v2, f2).
    """
    variance = sum(part for part, _ in parts)
    return variance, variance**2 / sum(part**2 / freedom for part, freedom in parts)


def t_test(difference: float, variance: float, freedom: float, level: float) -> Comparison:
    """Student's t for a difference whose variance was estimated with so many degrees of freedom."""
    error = math.sqrt(variance)
    p = 2 * stats.t.sf(abs(difference) / error, freedom)
    low, high = stats.t.interval(level, freedom, loc=difference, scale=error)
    return Comparison(difference, Interval(float(low), float(high)), float(p))


def hedges_g(arm: Scores, base: Scores) -> float | None:
    """The difference in standard deviations of a single run, freed of the bias that few seeds give it.

    g = J(m) (mean - mean of base) / s, with s pooled over both arms, m = n + n_base - 2 and
    J(m) = Γ(m / 2) / (sqrt(m / 2) Γ((m - 1) / 2)) (Hedges 1981, equation 6e). J(4) = 0.80.

    Returns:
        No unit; None where the spread of an arm is unknown.
    """
    if unknown_difference(arm, base):
        return None
    freedom = arm.seeds + base.seeds - 2
    correction = math.exp(special.gammaln(freedom / 2) - special.gammaln((freedom - 1) / 2)) / math.sqrt(freedom / 2)
    return correction * (arm.mean - base.mean) / pooled_deviation(arm, base)


def pooled_deviation(arm: Scores, base: Scores) -> float:
    """The standard deviation of a single run, from both arms as if they varied alike; each needs two seeds."""
    squares = (arm.seeds - 1) * arm.variance + (base.seeds - 1) * base.variance
    return math.sqrt(squares / (arm.seeds + base.seeds - 2))


def unknown_difference(arm: Scores, base: Scores) -> str:
    """Why seeds cannot tell the arms apart; nothing where they can. One arm may well have no spread, not both."""
    if min(arm.seeds, base.seeds) > 1 and (not arm.unknown_spread() or not base.unknown_spread()):
        return ""
    return arm.unknown_spread() if arm.seeds == 1 else base.unknown_spread()


def holm(p: Mapping[str, float]) -> dict[str, float]:
    """What is left of each p where chance had many tries: Holm's step-down adjustment (Holm 1979).

    Call significant what stays below α, and the chance that any of the calls is wrong stays below α, whatever the arms
    have to do with each other. The k-th smallest of m values is multiplied by m - k + 1, and none may fall below a
    smaller one's. It is never weaker than Bonferroni's m p, and asks for nothing more.

    Args:
        p: by arm; only of arms that were tested, for every one has its price.

    Raises:
        ValueError: a value is not between 0 and 1.
    """
    for arm, value in p.items():
        if not 0 <= value <= 1:
            raise ValueError(f"the p of {arm} is {value}, which is no probability")
    adjusted: dict[str, float] = {}
    least = 0.0
    for rank, (arm, value) in enumerate(sorted(p.items(), key=lambda item: item[1])):
        least = max(least, min(1.0, (len(p) - rank) * value))
        adjusted[arm] = least
    return {arm: adjusted[arm] for arm in p}
