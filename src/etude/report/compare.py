"""Comparing the arms of a study.

Every view of a report (terminal, Markdown, LaTeX, the page) shows what `compare` found; none computes for itself.
"""

from collections.abc import Mapping, Sequence
from math import isfinite
from statistics import fmean
from typing import Any

from etude.report.agreement import agreement
from etude.report.arm_scores import ArmScores, measure_arm, scores
from etude.report.comparison import BUDGET, TOLERANCE, ArmResult, Compared, Ranks
from etude.report.selection import Selection
from etude.report.significance import Against, compare_arms, correct_for_many
from etude.report.statistics import (
    Scores,
    kendall,
    mean_interval,
    moderate,
    spearman,
    variances,
)
from etude.report.test_set import test_set
from etude.report.versions import TODAY
from etude.runs.records import Run
from etude.studies.study import Study, value_at


def compare(study: Study, selection: Selection) -> Compared:
    """All that can be said of the selected runs."""
    first = min(selection.runs, key=lambda run: (run.divergence is not None, run.arm != study.baseline))
    base_set = test_set(first, selection.runs, study.metrics.values())
    runs = {arm: [run for run in selection.runs if run.arm == arm and not run.divergence] for arm in study.arms}
    measured = {arm: measure_arm(study.metrics.values(), arm, its, base_set) for arm, its in runs.items() if its}
    tests = _tests(study, measured)
    arms = [_arm(study, arm, selection, runs, measured.get(arm), tests.get(arm)) for arm in study.arms]
    return Compared(
        study,
        baseline=next(arm for arm in arms if arm.arm == study.baseline),
        arms=arms,
        setting={key: first.chosen(key) for key in ("data", "scale", "budget")} | first.typed | _text(first),
        test_set=base_set,
        ranks=_ranks(study, arms),
        agreement=agreement(study, tests),
        notes=[*_diverged(arms), *_not_compared(measured)],
        left_out=selection.notes,
    )


def _text(run: Run) -> dict[str, str]:
    """The version of the text, where it is not the one on disk."""
    version = run.setting.get("text", TODAY)
    return {} if version == TODAY else {"text": version}


def _tests(study: Study, measured: Mapping[str, ArmScores]) -> dict[str, Against]:
    """Each arm against the one that the study holds it against, where both have runs."""
    priors = {name: moderate([its.of[name] for its in measured.values() if name in its.of]) for name in study.metrics}
    margins = {study.lead.name: study.criteria.margin} if study.criteria and study.lead.is_log else {}
    pairs = {arm: study.reference(arm) for arm in measured if arm != study.baseline}
    return correct_for_many(
        {
            arm: compare_arms(other, measured[arm], measured[other], study.metrics, priors, margins)
            for arm, other in pairs.items()
            if other in measured
        }
    )


def _arm(
    study: Study,
    arm: str,
    selection: Selection,
    finished: Mapping[str, Sequence[Run]],
    measured: ArmScores | None,
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
        means={
            name: mean_interval(Scores(arm, values))
            for name, metric in study.metrics.items()
            if (values := scores(runs, metric))
        },
        comparable=frozenset(measured.of if measured else ()),
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


def _ranks(study: Study, arms: Sequence[ArmResult]) -> dict[str, Ranks]:
    """By each metric that the paper prints."""
    ranks = {}
    for name in study.printed:
        ours = {arm.arm: arm.means[name].value for arm in arms if name in arm.comparable}
        paper = {arm.arm: arm.paper.get(name) for arm in arms if name in arm.comparable}
        ranks[name] = Ranks(spearman(ours, paper), kendall(ours, paper))
    return ranks


def _diverged(arms: Sequence[ArmResult]) -> list[str]:
    return [
        f"{arm.arm}, seed {run.seed}, diverged ({run.divergence}): it enters no mean."
        for arm in arms
        for run in arm.diverged
    ]


def _not_compared(measured: Mapping[str, ArmScores]) -> list[str]:
    """Why some statistics are missing: a sentence for each reason, with the arms it holds for."""
    reasons: dict[str, list[str]] = {}
    for arm, its in measured.items():
        for reason in its.why_not:
            reasons.setdefault(reason, []).append(arm)
    names = {why: "all arms" if len(arms) == len(measured) > 1 else ", ".join(arms) for why, arms in reasons.items()}
    return [f"Not compared: {arms}: {why}." for why, arms in names.items()]
