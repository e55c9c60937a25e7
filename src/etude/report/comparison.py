"""The result of comparing the arms of a study: dataclasses that `compare.py` fills.

Every view of a report (terminal, Markdown, LaTeX, W&B) shows these; the HTML page gets them as JSON.
"""

from dataclasses import dataclass
from typing import NamedTuple

from etude.report import statistics as st
from etude.report.scores import TestSet
from etude.report.tuned import Readings
from etude.store.records import Run
from etude.study.criteria import Criteria
from etude.study.study import Study

ALPHA = 0.05  # a difference has a star if its p after Holm is below this; a tie is shown if its p is

BUDGET = {"parameters": "parameters", "tokens": "tokens", "flops": "FLOPs"}
"""The budget of an arm: key in a run's result -> its label in reports."""

TOLERANCE = 0.1  # relative difference from the baseline's budget above which a report mentions it; as in a plan


class Spread(NamedTuple):
    """The noise in the difference between two arms, as standard deviations."""

    of_run: float  # of a single run over seeds, pooled over both arms
    of_test_sets: float  # of the difference over test sets, in the limit of many seeds


@dataclass(frozen=True)
class Difference:
    """The difference between an arm and its reference arm by one metric; None for what is not known.

    `test` is over seeds and sentences if the metric has sentences (`combined_test`), else over seeds
    (`moderated_test`). For a metric on a logarithmic scale it compares logarithms; for perplexity, nats per token.
    """

    test: st.Comparison
    holm: float | None = None  # p of `test` after Holm's correction
    tie: float | None = None  # p of the test that the arms differ by less than the study's margin (`equivalence`)
    bootstrap: st.Comparison | None = None  # over sentences, given these runs; never decides a star
    randomisation: float | None = None  # p for the same question, by exchanging translations
    hedges_g: float | None = None  # effect size, in standard deviations of a single run
    spread: Spread | None = None  # the noise that the difference is compared with

    @property
    def star(self) -> bool:
        """Whether the difference is significant over seeds, and over test sentences if the metric has them."""
        return self.holm is not None and self.holm < ALPHA

    @property
    def tied(self) -> bool:
        """Whether the arms differ significantly less than the study's margin."""
        return self.tie is not None and self.tie < ALPHA


@dataclass(frozen=True)
class Against:
    """The differences between an arm and its `reference` arm, by each comparable metric."""

    reference: str
    differences: dict[str, Difference]


@dataclass(frozen=True)
class ArmResult:
    """The results of one arm of a study."""

    arm: str
    overrides: list[str]  # its overrides
    runs: list[Run]  # finished runs with finite metrics
    diverged: list[Run]  # finished runs without; they enter no mean
    unfinished: list[Run]  # runs that have begun
    means: dict[str, st.Mean]  # by metric, on the metric's own scale; only metrics that all runs have
    scores: dict[str, st.Scores]  # by metric that is comparable with the baseline; logarithms (nats) for perplexity
    sentences: st.Resampled | None  # BLEU on resampled test sets; None without translations or a metric over sentences
    why_not: list[str]  # phrases: why scores or sentences are missing
    costs: dict[str, float | None]  # parameters, steps, target tokens, training FLOPs and seconds; means over runs
    paper: dict[str, float | None]  # the paper's numbers: ppl, bleu, params_M
    budget: dict[str, float]  # label -> multiple of the baseline's, only where it differs by more than TOLERANCE
    against: Against | None = None  # None for the baseline, and if this arm or its reference has no runs

    @property
    def training(self) -> str:
        """The identity of its training, whatever the seed; arms that share it differ in their scoring alone."""
        return self.runs[0].training if self.runs else ""

    @property
    def seeds(self) -> list[int]:
        """The seeds of the runs that enter the means."""
        return [run.seed for run in self.runs]

    @property
    def counts(self) -> st.Counts | None:
        """The BLEU statistics of each sentence and run."""
        return self.sentences.counts if self.sentences else None

    @property
    def variances(self) -> st.Variances | None:
        """The variances of BLEU over seeds and over test sets; None with one seed."""
        return st.variances(self.sentences) if self.sentences and len(self.runs) > 1 else None

    @property
    def budget_differs(self) -> list[str]:
        """How the budget differs from the baseline's, such as "1.30 × the tokens"."""
        return [f"{ratio:.2f} × the {what}" for what, ratio in self.budget.items()]


@dataclass(frozen=True)
class Ranks:
    """Rank correlations of the arms' scores with the paper's, by one metric."""

    spearman: st.RankCorrelation
    kendall: st.RankCorrelation


@dataclass(frozen=True)
class Point:
    """An arm's difference from the baseline in nats per token, the paper's and ours."""

    arm: str
    paper: float
    ours: float  # the mean over seeds
    paper_range: st.Interval  # of the paper's difference: what it may have been before rounding, or `deviations` of it
    interval: st.Interval | None  # the confidence interval of `ours`
    large: bool  # whether the paper's difference is large enough for its sign to count; if not, it is a tie
    agrees: bool  # large: whether ours has the same sign; tie: whether ours is within the margin
    shown: bool  # large: the same as `agrees`; tie: whether the equivalence test is significant


@dataclass(frozen=True)
class Agreement:
    """How far a study agrees with its paper by `criteria`: a point for each arm, and the line of ours over theirs.

    `missing` are the arms that the paper has and that have no result here, each with whether its difference is large.
    """

    criteria: Criteria
    points: dict[str, Point]
    missing: dict[str, bool]
    line: st.Line

    @property
    def signs(self) -> tuple[int, int]:
        """Count the large differences: (with the paper's sign, all that the paper has)."""
        large = [point for point in self.points.values() if point.large]
        return sum(point.agrees for point in large), len(large) + sum(self.missing.values())

    @property
    def ties(self) -> tuple[int, int, int]:
        """Count the ties: (shown by a test, within the margin, all that the paper has)."""
        ties = [point for point in self.points.values() if not point.large]
        everything = len(ties) + list(self.missing.values()).count(False)
        return sum(point.shown for point in ties), sum(point.agrees for point in ties), everything


@dataclass(frozen=True)
class Compared:
    """The compared arms of a study: everything that a report shows."""

    study: Study
    baseline: ArmResult  # may have no runs
    arms: list[ArmResult]  # all arms in the study's order, including the baseline and arms without runs
    setting: dict[str, str]  # the choices shared by all runs: {"data": "grammar", "scale": "pocket", ...}
    test_set: TestSet  # of the baseline, or of the first arm with runs
    ranks: dict[str, Ranks]  # by each metric that the paper prints
    agreement: Agreement | None  # with the paper, by the study's criteria
    notes: list[str]  # sentences on runs that diverged, and on what is not compared and why
    edited: list[str]  # arms whose runs do not have the values that study.yaml gives them now
    left_out: list[str]  # sentences on runs that were not selected
    readings: Readings  # the runs separated into trials, shared value and best values, if the study tunes its arms
    tuned: "Compared | None" = None  # the same table with each arm at its own best value, if anything was tuned

    @property
    def correction(self) -> str:
        """What p of a difference is corrected by, for there are many."""
        looks = "Bonferroni's correction for all arms and O'Brien and Fleming's for all looks"
        return looks if self.study.until_decided else "Holm's correction for all arms"

    @property
    def several_seeds(self) -> bool:
        """Whether any arm has more than one seed."""
        return any(len(arm.runs) > 1 for arm in self.arms)
