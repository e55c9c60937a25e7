"""What a study found, arm by arm, with all that can be said of its differences from the baseline.

Every view of a report (terminal, Markdown, LaTeX, the page) shows what `compare` found; none computes for itself.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import isfinite
from statistics import fmean
from typing import Any

from etude.config.studies import Study, value_at
from etude.report.against import Against, against, corrected
from etude.report.agreement import Agreement, agreement
from etude.report.measured import Measured, comparable, measure, scores
from etude.report.results import Run
from etude.report.selection import Selection
from etude.report.statistics import (
    Counts,
    Mean,
    RankCorrelation,
    Scores,
    Variances,
    kendall,
    mean_interval,
    moderate,
    spearman,
    variances,
)
from etude.report.texts import TestSet, test_set
from etude.report.versions import TODAY

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
        ppl: of the test set, per word piece; None without runs.
        bleu: of the test set, 0 to 100; None without runs.
        comparable: which of "ppl" and "bleu" were measured as the baseline's were, so that they may be set beside it.
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
    ppl: Mean | None
    bleu: Mean | None
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
        ranks: by "ppl" and "bleu"; empty where there is no paper.
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


def compare(study: Study, selection: Selection) -> Compared:
    """All that can be said of the selected runs."""
    first = min(selection.runs, key=lambda run: (run.arm != study.baseline, run.divergence is not None))
    base_set = test_set(first, selection.runs)
    runs = {arm: [run for run in selection.runs if run.arm == arm and not run.divergence] for arm in study.arms}
    measured = {arm: measure(arm, its, base_set) for arm, its in runs.items() if its}
    tests = _tests(study, measured)
    arms = [_arm(study, arm, selection, runs, measured.get(arm), tests.get(arm)) for arm in study.arms]
    return Compared(
        study,
        baseline=next(arm for arm in arms if arm.arm == study.baseline),
        arms=arms,
        setting={key: first.chosen(key) for key in ("data", "scale", "budget")} | first.typed | _text(first),
        test_set=base_set,
        ranks=_ranks(arms) if study.paper.arms else {},
        agreement=agreement(study, tests),
        notes=[*_diverged(arms), *_not_compared(measured)],
        left_out=selection.notes,
    )


def _text(run: Run) -> dict[str, str]:
    """The version of the text, where it is not the one on disk."""
    version = run.setting.get("text", TODAY)
    return {} if version == TODAY else {"text": version}


def _tests(study: Study, measured: Mapping[str, Measured]) -> dict[str, Against]:
    """Each arm against the one that the study holds it against, where both have runs."""
    prior = moderate([its.loss for its in measured.values() if its.loss])
    margin = study.criteria.margin if study.criteria else None
    pairs = {arm: study.reference(arm) for arm in measured if arm != study.baseline}
    return corrected(
        {
            arm: against(other, measured[arm], measured[other], prior, margin)
            for arm, other in pairs.items()
            if other in measured
        }
    )


def _arm(
    study: Study,
    arm: str,
    selection: Selection,
    finished: Mapping[str, Sequence[Run]],
    measured: Measured | None,
    found: Against | None,
) -> ArmResult:
    runs, base = list(finished[arm]), finished[study.baseline]
    sentences = measured.sentences if measured else None
    return ArmResult(
        arm,
        overrides=study.arms[arm],
        differs=_differs(study, runs, base) if arm != study.baseline else {},
        runs=runs,
        diverged=[run for run in selection.runs if run.arm == arm and run.divergence],
        unfinished=[run for run in selection.unfinished if run.arm == arm],
        ppl=mean_interval(Scores(arm, scores(runs, "test.perplexity"))) if runs else None,
        bleu=mean_interval(Scores(arm, scores(runs, "test.bleu"))) if runs else None,
        comparable=comparable(measured),
        counts=sentences.counts if sentences else None,
        variances=variances(sentences) if sentences and len(runs) > 1 else None,
        parameters=runs[0].result["parameters"] if runs else None,
        steps=runs[0].result["steps"] if runs else None,
        tokens=_mean(runs, "tokens"),
        flops=_mean(runs, "flops"),
        seconds=_mean(runs, "seconds"),
        paper=study.paper.arms.get(arm, {}),
        budget=_budget(runs, base),
        against=found,
    )


def _differs(study: Study, runs: Sequence[Run], base: Sequence[Run]) -> dict[str, Any]:
    """By printed header; against no baseline, everything."""
    if not runs:
        return {}
    values = {header: value_at(runs[0].config, key) for header, key in study.columns.items()}
    theirs = {header: value_at(base[0].config, key) for header, key in study.columns.items()} if base else {}
    return {header: value for header, value in values.items() if not base or value != theirs[header]}


def _budget(runs: Sequence[Run], base: Sequence[Run]) -> dict[str, float]:
    found = {}
    for key, told in BUDGET.items():
        ours, theirs = _mean(runs, key), _mean(base, key)
        if ours and theirs and abs(ours / theirs - 1) > TOLERANCE:
            found[told] = ours / theirs
    return found


def _mean(runs: Sequence[Run], key: str) -> float | None:
    values = [run.result[key] for run in runs if isinstance(run.result.get(key), int | float)]
    return fmean(values) if values and all(map(isfinite, values)) else None


def _ranks(arms: Sequence[ArmResult]) -> dict[str, Ranks]:
    ranks = {}
    for name in ("ppl", "bleu"):
        means = {arm.arm: getattr(arm, name) for arm in arms if name in arm.comparable}
        ours = {arm: mean and mean.value for arm, mean in means.items()}
        paper = {arm.arm: arm.paper.get(name) for arm in arms if name in arm.comparable}
        ranks[name] = Ranks(spearman(ours, paper), kendall(ours, paper))
    return ranks


def _diverged(arms: Sequence[ArmResult]) -> list[str]:
    return [
        f"{arm.arm}, seed {run.seed}, diverged ({run.divergence}): it enters no mean."
        for arm in arms
        for run in arm.diverged
    ]


def _not_compared(measured: Mapping[str, Measured]) -> list[str]:
    """Why some statistics are missing: a sentence for each reason, with the arms it holds for."""
    reasons: dict[str, list[str]] = {}
    for arm, its in measured.items():
        for reason in its.why_not:
            reasons.setdefault(reason, []).append(arm)
    names = {why: "all arms" if len(arms) == len(measured) > 1 else ", ".join(arms) for why, arms in reasons.items()}
    return [f"Not compared: {arms}: {why}." for why, arms in names.items()]
