"""Selection and confirmation apart: what the best trials of a search were chosen for, and what fresh seeds gave them.

A score that a trial was chosen for is optimistic. Only what the same config scores on fresh seeds can be held against a
baseline, or stand in a paper.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from etude.report.statistics import BestOf, Scores, best_of, pooled
from etude.report.wording import format_fixed
from etude.study.metrics import Metric


@dataclass(frozen=True)
class Selection:
    """What trials were chosen from.

    Attributes:
        scores: of the trials that came to their end, the best first.
        worse: how many others were paused, pruned or diverged.
        metric: by what they were chosen.
        maximize: whether the highest score is the best.
        averaged: the seeds whose mean a score is.
        spread: the standard deviation of a seed and its degrees of freedom; None if it is not known.
    """

    scores: Sequence[float]
    worse: int
    metric: Metric
    maximize: bool
    averaged: int = 1
    spread: tuple[float, float] | None = None

    def expect(self, place: int, seeds: int) -> BestOf | None:
        """Estimate what the trial at a place, 0 for the best, scores on fresh seeds; None if no spread is known."""
        if self.spread is None:
            return None
        deviation, freedom = self.spread
        return best_of(
            Scores("the search", self.scores),
            deviation,
            seeds,
            place=place,
            averaged=self.averaged,
            worse=self.worse,
            freedom=freedom,
            lower_is_better=not self.maximize,
        )


@dataclass(frozen=True)
class Confirmed:
    """A trial, or the baseline, on fresh seeds.

    Attributes:
        name: what its row is called, such as "trial 12".
        scores: the metric on each fresh seed, at full budget.
        place: of the trial in the search, 0 for the best; None for the baseline.
        diverged: how many other fresh seeds diverged.
    """

    name: str
    scores: Sequence[float]
    place: int | None = None
    diverged: int = 0


def spread_of(confirmed: Sequence[Confirmed]) -> tuple[float, float] | None:
    """Return the standard deviation of a seed and its degrees of freedom, pooled; None if no two seeds tell it."""
    return pooled([Scores(one.name, one.scores) for one in confirmed if one.scores])


def on_optimism(selection: Selection, seeds: int = 3) -> str:
    """Say how optimistic the score of the best trial is."""
    metric, trials = selection.metric, len(selection.scores) + selection.worse
    found = selection.expect(0, seeds)
    if found is None:
        return (
            f"The best of {trials} trials is optimistic, because luck is in what it was chosen for; by how much, fresh "
            "seeds of it say (of a sweep file: etude sweep FILE confirm=3)."
        )
    digits = metric.digits + 1
    told = [format_fixed(value, digits) for value in (found.score, found.expected, *found.interval)]
    assert selection.spread
    return (
        f"The best of {trials} trials is optimistic: chosen for {told[0]}, it is expected to have {told[1]} on fresh "
        f"seeds, and the mean of {seeds} of them {told[2]} to {told[3]} (95 %; a seed has a standard deviation of "
        f"{selection.spread[0]:.2g})."
    )
