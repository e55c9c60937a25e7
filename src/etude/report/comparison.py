"""What a study found, arm by arm, with all that can be said of its differences from the baseline."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from etude.report.agreement import Agreement
from etude.report.significance import Against
from etude.report.statistics import (
    Counts,
    Mean,
    RankCorrelation,
    Variances,
)
from etude.report.test_set import TestSet
from etude.runs.records import Run
from etude.studies.study import Study

BUDGET = {"parameters": "parameters", "tokens": "tokens", "flops": "FLOPs"}
"""What an arm is given: key of a result -> how it is told."""

TOLERANCE = 0.1  # how far a budget may be from the baseline's before it is named, as a share; as in a plan


@dataclass(frozen=True)
class ArmResult:
    """One arm.

    Attributes:
        arm: its name.
        overrides: what is typed to get it.
        differs: what the table shows of its config and is not as in the baseline: printed header -> value.
        runs: the finished ones with finite metrics.
        diverged: the finished ones without; they enter no mean.
        unfinished: the runs that have begun.
        means: by metric, each on its own scale; not there is what not all runs were measured by.
        comparable: the metrics that were measured as the baseline's were, so that they may be set beside it.
        counts: what each sentence brings to the BLEU of each run; None without translations that can be compared.
        variances: of BLEU, over seeds and over test sets; None with one seed, or without counts.
        parameters: of the model; None without runs, as all that follows.
        steps: of the optimizer.
        tokens: target tokens trained on, a run.
        flops: of training, a run; None where it was not recorded.
        seconds: of training, a run.
        paper: what the paper printed: ppl, bleu, params_M.
        budget: its parameters, tokens and FLOPs as multiples of the baseline's, those that are not about the same.
        against: the arm held against the baseline, or another if the study says so; None for the baseline itself, and
            where one of the two has no runs.
    """

    arm: str
    overrides: list[str]
    differs: dict[str, Any]
    runs: list[Run]
    diverged: list[Run]
    unfinished: list[Run]
    means: dict[str, Mean]
    comparable: frozenset[str]
    counts: Counts | None
    variances: Variances | None
    parameters: int | None
    steps: int | None
    tokens: float | None
    flops: float | None
    seconds: float | None
    paper: dict[str, float | None]
    budget: dict[str, float]
    against: Against | None

    @property
    def seeds(self) -> list[int]:
        """Of the runs that the means are made of."""
        return [run.seed for run in self.runs]

    @property
    def budget_differs(self) -> list[str]:
        """Where it was given more or less than the baseline, such as "1.30 × the tokens"."""
        return [f"{ratio:.2f} × the {what}" for what, ratio in self.budget.items()]


@dataclass(frozen=True)
class Ranks:
    """How far the arms stand in the paper's order, by one column."""

    spearman: RankCorrelation
    kendall: RankCorrelation


@dataclass(frozen=True)
class Tuned:
    """The second reading of a study that tunes its arms.

    Attributes:
        compared: the same table with each arm at its own best; of this one nothing is tuned again.
        values: the best values of the keys that are tuned, by arm.
        trials: how many were tried, by arm.
    """

    compared: "Compared"
    values: Mapping[str, tuple[Any, ...]]
    trials: Mapping[str, int]


@dataclass(frozen=True)
class Compared:
    """The table of a study with everything behind it.

    Attributes:
        study: what was compared.
        baseline: the arm that the others are held against; it may have no runs.
        arms: all of them in the study's order, the baseline and those without runs among them.
        setting: what a person may have chosen for all runs alike: {"data": "grammar", "scale": "pocket", ...}.
        test_set: the baseline's, or where it has no runs the first arm's.
        ranks: by each metric that the paper prints.
        agreement: with the paper, by the study's own criteria; None where it has none.
        notes: sentences on what diverged, or is not compared, and why.
        left_out: sentences on the runs that were not selected.
        tuned: the reading with each arm at its own best; None where nothing was tuned.
    """

    study: Study
    baseline: ArmResult
    arms: list[ArmResult]
    setting: dict[str, str]
    test_set: TestSet
    ranks: dict[str, Ranks]
    agreement: Agreement | None
    notes: list[str]
    left_out: list[str]
    tuned: Tuned | None = None

    @property
    def several_seeds(self) -> bool:
        """Whether any arm has more than one."""
        return any(len(arm.runs) > 1 for arm in self.arms)
