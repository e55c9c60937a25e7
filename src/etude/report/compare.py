"""Compare the arms of a study. All views of a report show what `compare` returns."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import isfinite, log
from statistics import fmean

from etude.paths import find_file
from etude.report import statistics as st
from etude.report.comparison import BUDGET, TOLERANCE, Against, Agreement, ArmResult, Compared, Difference, Point, Ranks
from etude.report.grouping import edited_arms
from etude.report.scores import TestSet, measure_arm, scores, test_set
from etude.report.selection import Selection
from etude.report.sequential import test_until_decided
from etude.report.significance import test_arms
from etude.report.wording import name_arms
from etude.store.records import Run
from etude.study.criteria import Criteria
from etude.study.study import Study

_COSTS = ("parameters", "steps", "tokens", "flops", "seconds")


def compare(study: Study, selection: Selection) -> Compared:
    """Compute means, tests, ranks and agreement with the paper from the selected runs."""
    first = min(selection.runs, key=lambda run: (run.divergence is not None, run.arm != study.baseline))
    base_set = test_set(first, selection.runs)
    found = {arm: _collect(study, arm, selection, base_set) for arm in study.arms}
    pairs = _pair(study, selection, found)
    tests = test_arms(study, pairs)
    if study.until_decided:
        tests = test_until_decided(study, selection.runs, tests, lambda alone, runs: _against(alone, selection, runs))
    base = found[study.baseline]
    arms = [
        replace(
            arm,
            budget=_budget(arm, base),
            against=tests.get(arm.arm),
            why_not=pairs[arm.arm][0].why_not if arm.arm in pairs else arm.why_not,
        )
        for arm in found.values()
    ]
    return Compared(
        study,
        baseline=next(arm for arm in arms if arm.arm == study.baseline),
        arms=arms,
        setting={key: first.chosen(key) for key in ("data", "scale", "budget") if key in first.choices} | first.typed,
        test_set=base_set,
        ranks={name: _ranks(name, arms) for name in study.printed},
        agreement=_agreement(study, tests),
        notes=[
            *(
                f"{run.arm}, seed {run.seed}, diverged ({run.divergence}): it enters no mean."
                for arm in arms
                for run in arm.diverged
            ),
            *_not_compared({arm.arm: arm.why_not for arm in arms if arm.runs}),
            *_not_measured(study, arms),
        ],
        edited=edited_arms(study, selection.runs),
        left_out=selection.notes,
        readings=selection.readings,
        tuned=compare(study, replace(selection, runs=selection.best, best=[], notes=[])) if selection.best else None,
    )


def _against(study: Study, selection: Selection, runs: list[Run]) -> dict[str, Against]:
    """Test the arms of a study by some of the selected runs."""
    arms = compare(study, replace(selection, runs=runs, best=[])).arms
    return {arm.arm: arm.against for arm in arms if arm.against}


def _collect(study: Study, arm: str, selection: Selection, base: TestSet) -> ArmResult:
    """Collect the results of one arm, and the scores that are comparable with those on the test set `base`."""
    finished = sorted((run for run in selection.runs if run.arm == arm), key=lambda run: run.seed)
    runs = [run for run in finished if not run.divergence]
    measured = {name: scores(runs, metric) for name, metric in study.metrics.items()}
    comparable, sentences, why_not = measure_arm(study.metrics.values(), arm, runs, base)
    return ArmResult(
        arm,
        overrides=study.arms[arm],
        runs=runs,
        diverged=[run for run in finished if run.divergence],
        unfinished=[run for run in selection.unfinished if run.arm == arm],
        means={name: st.mean_interval(st.Scores(arm, values)) for name, values in measured.items() if values},
        scores=comparable,
        sentences=sentences,
        why_not=why_not,
        costs={key: _mean(runs, key) for key in _COSTS},
        paper=study.paper.arms.get(arm, {}),
        budget={},
    )


def _mean(runs: Sequence[Run], key: str) -> float | None:
    values = [run.result[key] for run in runs if isinstance(run.result.get(key), int | float)]
    return fmean(values) if values and all(map(isfinite, values)) else None


def _budget(arm: ArmResult, base: ArmResult) -> dict[str, float]:
    found = {}
    for key, label in BUDGET.items():
        ours, theirs = arm.costs[key], base.costs[key]
        if ours and theirs and abs(ours / theirs - 1) > TOLERANCE:
            found[label] = ours / theirs
    return found


def _pair(study: Study, selection: Selection, found: Mapping[str, ArmResult]) -> dict[str, tuple[ArmResult, ArmResult]]:
    """Return each arm with its reference arm, if both have runs.

    Where the reference was tested on another text than the baseline (Table 2 has two languages), both are collected
    again: their scores are those that are comparable on the text of the reference.
    """
    pairs = {}
    for name, arm in found.items():
        reference = found[study.reference(name)]
        if name == study.baseline or not (arm.runs and reference.runs):
            continue
        if reference.why_not and reference.arm != study.baseline:
            own = test_set(reference.runs[0], selection.runs)
            arm, reference = (_collect(study, each.arm, selection, own) for each in (arm, reference))
        pairs[name] = arm, reference
    return pairs


def _ranks(name: str, arms: Sequence[ArmResult]) -> Ranks:
    ours = {arm.arm: arm.means[name].value for arm in arms if name in arm.scores}
    paper = {arm.arm: arm.paper.get(name) for arm in arms if name in arm.scores}
    return Ranks(st.spearman(ours, paper), st.kendall(ours, paper))


def _agreement(study: Study, found: Mapping[str, Against]) -> Agreement | None:
    """Compare a study's differences with the paper's: their signs, ties and sizes.

    All differences are in nats: an arm's log perplexity minus the baseline's. On this scale perplexities of different
    test sets can be compared. None if the study has no criteria, or no arm has both a difference and a printed one.
    """
    printed, lead = study.paper.arms, study.lead
    base = (printed.get(study.baseline) or {}).get(lead.name)
    if study.criteria is None or not base or not lead.is_log:
        return None
    points, missing = {}, {}
    for arm in study.arms:
        theirs = (printed.get(arm) or {}).get(lead.name)
        if not theirs or arm == study.baseline or study.reference(arm) != study.baseline:
            continue
        deviations = ((printed[name] or {}).get(f"{lead.name}_sd") for name in (arm, study.baseline))
        threshold = study.criteria.threshold(*deviations)
        large = abs(paper := log(theirs / base)) > threshold
        if arm in found and lead.name in found[arm].differences:
            half = 0.5 * 10**-lead.digits  # of the last digit that the paper prints
            if study.criteria.deviations is not None:
                span = st.Interval(paper - threshold, paper + threshold)
            elif min(theirs, base) > half:
                span = st.Interval(log((theirs - half) / (base + half)), log((theirs + half) / (base - half)))
            else:  # it prints more digits than the metric shows
                span = st.Interval(paper, paper)
            points[arm] = _point(arm, paper, span, large, found[arm].differences[lead.name], study.criteria)
        else:
            missing[arm] = large
    if not points:
        return None
    line = st.fit_line({arm: point.paper for arm, point in points.items()}, {arm: p.ours for arm, p in points.items()})
    return Agreement(study.criteria, points, missing, line)


def _point(arm: str, paper: float, span: st.Interval, large: bool, held: Difference, criteria: Criteria) -> Point:
    ours = held.test.difference
    agrees = ours * paper > 0 if large else abs(ours) < criteria.margin
    return Point(arm, paper, ours, span, held.test.interval, large, agrees, agrees if large else held.tied)


def _not_compared(reasons: Mapping[str, Sequence[str]]) -> list[str]:
    """Say why statistics are missing: one sentence per reason, with the arms concerned."""
    arms: dict[str, list[str]] = {}
    for arm, whys in reasons.items():
        for why in whys:
            arms.setdefault(why, []).append(arm)
    return [f"Not compared: {name_arms(names, len(reasons), 'all arms')}: {why}." for why, names in arms.items()]


def _not_measured(study: Study, arms: Sequence[ArmResult]) -> list[str]:
    """Say how to score finished runs that lack a metric, if there are any."""
    names = [metric.column for metric in study.metrics.values() if metric.key == f"test.{metric.column}"]
    parts = [name for name in names if find_file("conf", f"metrics/{name}.yaml").is_file()]
    ours = [run for arm in arms for run in arm.runs if run.code]  # of another trainer, none is known
    if all(run.score(f"test.{name}") is not None for run in ours for name in parts):
        return []
    return [
        f"The same sweep with metrics=[{','.join(parts)}] scores finished runs by what they lack, without training."
    ]
