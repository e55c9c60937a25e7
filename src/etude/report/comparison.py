"""What a study found, arm by arm, with all that can be said of its differences from the baseline.

Every view of a report (terminal, Markdown, LaTeX, W&B) shows what stands here; the page is given it as JSON.
"""

from dataclasses import dataclass
from typing import NamedTuple

from etude.report import statistics as st
from etude.report.measure import TestSet
from etude.report.tuning import Readings
from etude.runs.records import Run
from etude.studies.criteria import Criteria
from etude.studies.study import Study

ALPHA = 0.05  # below it, after Holm, a difference gets its star, and a tie is shown

BUDGET = {"parameters": "parameters", "tokens": "tokens", "flops": "FLOPs"}
"""What an arm is given: key of a result -> how it is told."""

TOLERANCE = 0.1  # how far a budget may be from the baseline's before it is named, as a share; as in a plan


class Spread(NamedTuple):
    """What hides a difference between two arms; standard deviations."""

    of_run: float  # of a single run over seeds, as if both arms varied alike
    of_test_sets: float  # of the difference over test sets, with seeds without end


@dataclass(frozen=True)
class Difference:
    """What tells an arm from the one it is held against, by one metric; None stands for what is not known.

    `test` is over seeds and sentences where there are sentences (`combined_test`), else over seeds (`moderated_test`);
    of a metric on a logarithmic scale it is of logarithms, of perplexity in nats a token.
    """

    test: st.Comparison
    holm: float | None = None  # the p of `test` after Holm
    tie: float | None = None  # p of the test that they differ by less than the study's margin (`equivalence`)
    bootstrap: st.Comparison | None = None  # over sentences, these very runs given; never worth a star
    randomisation: float | None = None  # p of the same question by exchanging translations
    hedges_g: float | None = None  # in standard deviations of a single run
    spread: Spread | None = None  # what the difference has to stand out from

    @property
    def star(self) -> bool:
        """Whether it would show for other seeds, and with sentences also on other sentences."""
        return self.holm is not None and self.holm < ALPHA

    @property
    def tied(self) -> bool:
        """Whether the arms are shown to differ by less than the study's margin."""
        return self.tie is not None and self.tie < ALPHA


@dataclass(frozen=True)
class Against:
    """What tells an arm from `reference`, the one it is held against, by each metric that may be compared."""

    reference: str
    differences: dict[str, Difference]


@dataclass(frozen=True)
class ArmResult:
    """One arm."""

    arm: str
    overrides: list[str]  # what is typed to get it
    runs: list[Run]  # the finished ones with finite metrics
    diverged: list[Run]  # the finished ones without; they enter no mean
    unfinished: list[Run]  # those that have begun
    means: dict[str, st.Mean]  # by metric, each on its own scale, where all runs were measured by it
    scores: dict[str, st.Scores]  # by metric that compares with the baseline's; of a perplexity the logarithms, in nats
    sentences: st.Resampled | None  # translations on resampled test sets; None where they or a metric for them lack
    why_not: list[str]  # why scores or sentences are missing; phrases
    costs: dict[str, float | None]  # parameters, steps, target tokens, FLOPs and seconds of training, means of a run
    paper: dict[str, float | None]  # what the paper printed: ppl, bleu, params_M
    budget: dict[str, float]  # parameters, tokens and FLOPs as multiples of the baseline's, where not about the same
    against: Against | None = None  # None for the baseline itself, and where one of the two has no runs

    @property
    def seeds(self) -> list[int]:
        """Of the runs that the means are made of."""
        return [run.seed for run in self.runs]

    @property
    def counts(self) -> st.Counts | None:
        """What each sentence brings to the BLEU of each run."""
        return self.sentences.counts if self.sentences else None

    @property
    def variances(self) -> st.Variances | None:
        """Of BLEU, over seeds and over test sets; None with one seed."""
        return st.variances(self.sentences) if self.sentences and len(self.runs) > 1 else None

    @property
    def budget_differs(self) -> list[str]:
        """Where it was given more or less than the baseline, such as "1.30 × the tokens"."""
        return [f"{ratio:.2f} × the {what}" for what, ratio in self.budget.items()]


@dataclass(frozen=True)
class Ranks:
    """How far the arms stand in the paper's order, by one column."""

    spearman: st.RankCorrelation
    kendall: st.RankCorrelation


@dataclass(frozen=True)
class Point:
    """An arm's difference from the baseline in ln PPL, nats a token."""

    arm: str
    paper: float
    ours: float  # the mean over seeds
    rounding: st.Interval  # where the paper's would lie before it was rounded
    interval: st.Interval | None  # of ours
    large: bool  # whether the paper's is large enough for its sign to count; else it is a tie
    agrees: bool  # whether ours has its sign; of a tie, whether ours is within the margin
    shown: bool  # of a tie, whether a test shows that it is; of a sign, the same as `agrees`


@dataclass(frozen=True)
class Agreement:
    """The points of all arms that have both, by which `criteria` they are judged, and the line of ours over theirs."""

    criteria: Criteria
    points: dict[str, Point]
    line: st.Line

    @property
    def signs(self) -> tuple[int, int]:
        """How many of the large differences have the paper's sign, of how many."""
        large = [point for point in self.points.values() if point.large]
        return sum(point.agrees for point in large), len(large)

    @property
    def ties(self) -> tuple[int, int, int]:
        """How many of the ties are shown, how many lie within the margin, of how many."""
        ties = [point for point in self.points.values() if not point.large]
        return sum(point.shown for point in ties), sum(point.agrees for point in ties), len(ties)


@dataclass(frozen=True)
class Compared:
    """The table of a study with everything behind it."""

    study: Study
    baseline: ArmResult  # which the others are held against; it may have no runs
    arms: list[ArmResult]  # all in the study's order, the baseline and those without runs among them
    setting: dict[str, str]  # what may have been chosen for all runs alike: {"data": "grammar", "scale": "pocket", ...}
    test_set: TestSet  # the baseline's, or where it has no runs the first arm's
    ranks: dict[str, Ranks]  # by each metric that the paper prints
    agreement: Agreement | None  # with the paper, by the study's own criteria
    notes: list[str]  # sentences on what diverged, or is not compared, and why
    outdated: list[str]  # the arms whose runs are not as study.yaml has them now
    left_out: list[str]  # sentences on the runs that were not selected
    readings: Readings  # how the runs of a study that tunes its arms were read
    tuned: "Compared | None" = None  # the same table with each arm at its own best, where anything was tuned

    @property
    def several_seeds(self) -> bool:
        """Whether any arm has more than one."""
        return any(len(arm.runs) > 1 for arm in self.arms)
