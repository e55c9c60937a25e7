"""Notes below a table on the differences between arms: how they were tested, and why some have no star."""

import math
from collections.abc import Sequence
from dataclasses import replace
from statistics import fmean, median

from etude.report.comparison import ALPHA, Compared, Difference, Spread
from etude.report.statistics import seeds_needed
from etude.report.wording import format_interval, join_words, name_arms
from etude.study.metrics import Metric

_MANY = 100  # seeds; a larger number is reported as "over 100"
_SIZES = (0.5, 1.0, 2.0)  # differences, in points, for which the number of seeds needed is reported
_FLOOR = 5.0  # points: who scores less has learned next to nothing, and varies less than who has


def on_differences(compared: Compared) -> list[str]:
    """Explain Δ, stars and ±; if every arm has one seed, why there are no stars."""
    base, metrics = compared.baseline, compared.study.metrics.values()
    others = {arm.arm: arm.against.reference for arm in compared.arms if arm.against}
    elsewhere = [f"{arm} against {other}" for arm, other in others.items() if other != base.arm]
    sentences = [f"Held against another arm than {base.arm}: {', '.join(elsewhere)}."] if elsewhere else []
    whose = "ours" if compared.study.paper.arms else "an arm's"
    nats = "".join(
        f"Δ {metric.compared_label}: {whose} less that of {base.arm}, in nats{' a token' * (metric.over == 'tokens')}. "
        for metric in metrics
        if metric.is_log
    )
    if not compared.several_seeds:
        alone = "One seed an arm: no arm is starred or bold, for it does not say how far another seed would fall."
        return [*sentences, f"{nats}{alone}"]
    sentences.append(
        f"±: half the 95 % interval of the mean over seeds (Student's t). {nats}Bold with a star: p < "
        f"{ALPHA} after {compared.correction}, for each metric by itself; {_tests(compared)}."
    )
    sentences += _on_shared_trainings(compared)
    sentences += [note for metric in metrics if not metric.sentences for note in _on_single_seeds(compared, metric)]
    sentences += _on_missing_tests(compared)
    return sentences + [note for metric in metrics if metric.sentences for note in _on_seeds_needed(compared, metric)]


def _tests(compared: Compared) -> str:
    """Name the test that each metric gets."""
    metrics = compared.study.metrics.values()
    sentences = []
    if over_seeds := [metric.compared_label for metric in metrics if not metric.sentences]:
        sentences.append(
            f"{join_words(over_seeds)} by a t test over seeds on these very sentences, whose variance each arm shares "
            "with the others as far as they vary alike (Smyth 2004)"
        )
    if over_both := [metric.compared_label for metric in metrics if metric.sentences]:
        sentences.append(f"{join_words(over_both)} by a t test over seeds and test sentences together")
    return ", ".join(sentences)


def _on_shared_trainings(compared: Compared) -> list[str]:
    """List the arms that are their reference's trainings, scored otherwise."""
    by_name = {arm.arm: arm for arm in compared.arms}
    pairs = [(arm, by_name[arm.against.reference]) for arm in compared.arms if arm.against]
    shared = [(arm, base) for arm, base in pairs if arm.training == base.training]
    whole = [arm.arm for arm, base in shared if arm.seeds == base.seeds]
    part = [arm.arm for arm, base in shared if arm.arm not in whole and {*arm.seeds} & {*base.seeds}]
    same = "The same trainings as what they are held against"
    how = "tested on the differences at each seed, in which the luck of a training cancels out"
    return [
        *[f"{same}: {', '.join(whole)}; {how}."] * bool(whole),
        *[f"{same}, and not the same seeds: {', '.join(part)}; Δ is that of the seeds in common."] * bool(part),
    ]


def _on_seeds_needed(compared: Compared, metric: Metric) -> list[str]:
    """Report the baseline's standard deviations, and how many seeds would show a difference."""
    base, sentences = compared.baseline, []
    if parts := base.variances:
        sentences.append(
            f"Standard deviation of the {metric.label} of {base.arm}: {math.sqrt(parts.seeds):.2f} over seeds on this "
            f"test set, {math.sqrt(parts.test_set):.2f} over test sets like this one."
        )
    if metric.name in base.means and base.means[metric.name].value < _FLOOR:
        return sentences
    several = [arm for arm in compared.arms if len(arm.runs) > 1]
    alike = [arm for arm in several if len({run.score(metric.key) for run in arm.runs} - {None}) == 1]
    if 2 * len(alike) >= len(several) > 0:
        sentences.append(
            f"How many seeds would show a difference of {metric.label} is not known: the runs of "
            f"{'each arm' if alike == several else name_arms([arm.arm for arm in alike], len(several), '')} score "
            "alike, so that nothing tells how far another seed would fall."
        )
    elif spreads := [one.spread for one in differences_of(compared, metric).values() if one.spread]:
        needed = {size: _seeds_for(size, spreads) for size in _SIZES}
        numbers = (
            f"{size:g} {metric.label} {('no number' if not seeds else seeds if seeds <= _MANY else f'over {_MANY}')}"
            for size, seeds in needed.items()
        )
        sentences.append(f"Seeds an arm that would likely show a true difference of so much: {', '.join(numbers)}.")
    return sentences


def differences_of(compared: Compared, metric: Metric) -> dict[str, Difference]:
    """Return the difference of each arm from its reference by one metric."""
    held = {arm.arm: arm.against.differences for arm in compared.arms if arm.against}
    return {arm: found[metric.name] for arm, found in held.items() if metric.name in found}


def _on_single_seeds(compared: Compared, metric: Metric) -> list[str]:
    """Give the interval of the difference for arms with one seed, whose mean has no ±."""
    alone = {arm.arm for arm in compared.arms if len(arm.runs) == 1}
    sentences = [
        f"{arm} {format_interval(found.test.interval, metric.compared_digits)}"
        for arm, found in differences_of(compared, metric).items()
        if arm in alone and found.test.interval
    ]
    what = f"Δ {metric.compared_label} of an arm with one seed, which is taken to vary as the others do"
    return [f"95 % interval of {what}: {', '.join(sentences)}."] * bool(sentences)


def _on_missing_tests(compared: Compared) -> list[str]:
    """Say why arms have no test and so no star; arms that share a reason get one sentence."""
    reasons: dict[tuple[str, str], list[str]] = {}  # (metrics, why) -> arms
    held = [arm for arm in compared.arms if arm.against]
    for arm in held:
        whys: dict[str, list[str]] = {}
        for metric in reversed(compared.study.metrics.values()):
            found = arm.against and arm.against.differences.get(metric.name)
            if found and found.test.p is None:
                scores, why = arm.scores.get(metric.name), found.test.why_not
                if scores and why == scores.unknown_spread():  # arms that share a reason share its sentence
                    why = replace(scores, arm="each").unknown_spread()
                whys.setdefault(why, []).append(metric.label)
        for why, metrics in whys.items():
            reasons.setdefault((" and ".join(metrics), why), []).append(arm.arm)
    return [
        f"No test of {metrics}, hence no star: {why} ({name_arms(names, len(held), 'all others')})."
        for (metrics, why), names in reasons.items()
    ]


def _seeds_for(difference: float, spreads: Sequence[Spread]) -> int | None:
    """Compute how many seeds would show a true difference with a power of 80 %, after correction for as many arms.

    `spreads` gives the noise of the arms that were compared. None if no number of seeds would do.
    """
    of_run = math.sqrt(fmean(spread.of_run**2 for spread in spreads))
    of_test_sets = median(spread.of_test_sets for spread in spreads)
    return seeds_needed(difference, of_run, alpha=ALPHA / len(spreads), test_set=of_test_sets)
