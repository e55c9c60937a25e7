"""The scores of one arm, one per seed: their mean, and its confidence interval over seeds."""

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

from scipy import special

from etude.errors import UserError


class Interval(NamedTuple):
    """The lower and upper end of an interval."""

    low: float
    high: float


@dataclass(frozen=True)
class Scores:
    """One metric of the runs of one arm.

    Raises:
        UserError: there are no values, or one is not a finite number.
    """

    arm: str  # the name, for errors and reasons
    values: Sequence[float]  # one per run, in the metric's unit: BLEU from 0 to 100, perplexity per subword

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
        """The number of runs."""
        return len(self.values)

    @property
    def mean(self) -> float:
        """The mean over seeds."""
        return statistics.fmean(self.values)

    @cached_property  # exact, in fractions, which takes its time
    def variance(self) -> float:
        """The unbiased variance over seeds; it takes two."""
        return statistics.variance(self.values)

    def unknown_spread(self) -> str:
        """Say why the variance over seeds is unknown; an empty string if it is known."""
        if self.seeds == 1:
            return f"{self.arm} has one seed, which does not say how far another would fall from it"
        if min(self.values) == max(self.values):
            return f"the {self.seeds} seeds of {self.arm} scored the same, which does not say how far others would fall"
        return ""


@dataclass(frozen=True)
class Mean:
    """A mean over seeds, in the metric's unit; if `interval` is None, `why_not` says why."""

    value: float
    interval: Interval | None
    why_not: str = ""


def mean_interval(scores: Scores, level: float = 0.95) -> Mean:
    """Compute the mean and its interval by Student's t (Student 1908): mean ± t(n - 1) s / sqrt(n).

    The interval is exact for normal scores with any number of seeds: ± 12.7 standard errors with two seeds, ± 4.3 with
    three. One seed gives none.
    """
    if unknown := scores.unknown_spread():
        return Mean(scores.mean, None, unknown)
    deviation = statistics.stdev(scores.values)  # the variance of 1e160 and 2e160 is no float
    error = deviation / math.sqrt(scores.seeds)
    reach = float(special.stdtrit(scores.seeds - 1, (1 + level) / 2)) * error
    return Mean(scores.mean, Interval(scores.mean - reach, scores.mean + reach))
