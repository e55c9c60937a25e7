"""The scores of one arm, one a seed: what every statistic over seeds starts from."""

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass

from etude.errors import UserError


@dataclass(frozen=True)
class Scores:
    """One metric of the runs of one arm.

    Attributes:
        arm: its name, which errors and reasons are told with.
        values: one a run, in the metric's own unit: BLEU from 0 to 100, perplexity per word piece.

    Raises:
        UserError: there are no values, or one is not a finite number.
    """

    arm: str
    values: Sequence[float]

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
        """Over seeds, unbiased: divided by one less than their number, which must be two or more."""
        return statistics.variance(self.values)

    def unknown_spread(self) -> str:
        """Why the seeds do not tell how far other seeds would fall; nothing where they do."""
        if self.seeds == 1:
            return f"{self.arm} has one seed, which does not say how far another would fall from it"
        if min(self.values) == max(self.values):
            return f"the {self.seeds} seeds of {self.arm} scored the same, which does not say how far others would fall"
        return ""
