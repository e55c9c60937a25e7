"""The scores of one arm, one a seed: their mean, and how far the mean of other seeds might be."""

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from scipy import stats

from etude.errors import UserError


class Interval(NamedTuple):
    """Two ends, in the unit of what they enclose."""

    low: float
    high: float


@dataclass(frozen=True)
class Scores:
    """One metric of the runs of one arm.

    Raises:
        UserError: there are no values, or one is not a finite number.
    """

    arm: str  # its name, which errors and reasons are told with
    values: Sequence[float]  # one a run, in the metric's own unit: BLEU from 0 to 100, perplexity per subword

    def __post_init__(self) -> None:
        if not self.values:
            raise UserError(f"{self.arm} has no scores: nothing can be said of an arm without a finished run")
        for value in self.values:
            if not math.isfinite(value):
                raise UserError(
                    f"{self.arm} has a run that scored {value}: statistics need finite numbers; leave that run out"
                )

    @property
    def seeds(self) -> int:
        """How many runs there are."""
        return len(self.values)

    @property
    def mean(self) -> float:
        """Over seeds."""
        return statistics.fmean(self.values)

    @property
    def variance(self) -> float:
        """Over seeds, of which there must be two; unbiased."""
        return statistics.variance(self.values)

    def unknown_spread(self) -> str:
        """Why the seeds do not tell how far other seeds would fall; nothing where they do."""
        if self.seeds == 1:
            return f"{self.arm} has one seed, which does not say how far another would fall from it"
        if min(self.values) == max(self.values):
            return f"the {self.seeds} seeds of {self.arm} scored the same, which does not say how far others would fall"
        return ""


@dataclass(frozen=True)
class Mean:
    """A mean over seeds, in the metric's unit; `interval` is None where `why_not` says why it is unknown."""

    value: float
    interval: Interval | None
    why_not: str = ""


def mean_interval(scores: Scores, level: float = 0.95) -> Mean:
    """The mean and its interval by Student's t (Student 1908): mean ± t(n - 1) s / sqrt(n).

    Exact for normal scores however few the seeds, and honest about how few they are: two seeds give an interval of
    12.7 standard errors on either side, three give 4.3. One seed gives none.
    """
    if unknown := scores.unknown_spread():
        return Mean(scores.mean, None, unknown)
    error = math.sqrt(scores.variance / scores.seeds)
    low, high = stats.t.interval(level, scores.seeds - 1, loc=scores.mean, scale=error)
    return Mean(scores.mean, Interval(float(low), float(high)))
