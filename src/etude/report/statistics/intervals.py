"""The mean of an arm over its seeds, and how far the mean of other seeds might be."""

import math
from dataclasses import dataclass
from typing import NamedTuple

from scipy import stats

from etude.report.statistics.scores import Scores


class Interval(NamedTuple):
    """Two ends, in the unit of what they enclose."""

    low: float
    high: float


@dataclass(frozen=True)
class Mean:
    """A mean over seeds.

    Attributes:
        value: in the metric's unit.
        interval: where the mean over all seeds would be; None where `why_not` says why that is unknown.
        why_not: a phrase, empty where there is an interval.
    """

    value: float
    interval: Interval | None
    why_not: str = ""


def mean_interval(scores: Scores, level: float = 0.95) -> Mean:
    """The mean and its interval by Student's t (Student 1908): mean ± t(n - 1) s / sqrt(n).

    Exact for normal scores however few the seeds, and honest about how few they are: two seeds give an interval of
    12.7 standard errors on either side, three give 4.3. One seed gives none.

    Args:
        scores: of one arm.
        level: how many of a hundred such intervals shall hold the truth, as a share.
    """
    unknown = scores.unknown_spread()
    if unknown:
        return Mean(scores.mean, None, unknown)
    error = math.sqrt(scores.variance / scores.seeds)
    low, high = stats.t.interval(level, scores.seeds - 1, loc=scores.mean, scale=error)
    return Mean(scores.mean, Interval(float(low), float(high)))
