"""What is said below a table of its differences: what they are, which have a star, and why others have none."""

import math
import re
from collections.abc import Sequence

from etude.report.comparison import ArmResult, Compared
from etude.report.significance import ALPHA, seeds_for
from etude.report.wording import format_interval, join_words
from etude.studies.metrics import Metric

_MANY = 100  # seeds; more than anyone will add
_SIZES = (0.5, 1.0, 2.0)  # points, for which the seeds needed are told


def on_differences(compared: Compared) -> list[str]:
    """What Δ, stars and ± are; with one seed, why there are none."""
    base, metrics = compared.baseline, compared.study.metrics.values()
    others = {arm.arm: arm.against.reference for arm in compared.arms if arm.against}
    elsewhere = [f"{arm} against {other}" for arm, other in others.items() if other != base.arm]
    told = [f"Held against another arm than {base.arm}: {', '.join(elsewhere)}."] if elsewhere else []
    whose = "ours" if compared.study.paper.arms else "an arm's"
    nats = " ".join(
        f"Δ {metric.compared_label}: {whose} less that of {base.arm}, in nats{' a token' * (metric.over == 'tokens')}."
        for metric in metrics
        if metric.is_log
    )
    if not compared.several_seeds:
        alone = "One seed an arm: nothing is starred or bold, for it does not say how far another seed would fall."
        return [*told, f"{nats} {alone}".strip()]
    told.append(
        f"±: half the 95 % interval of the mean over seeds (Student's t). {nats} Bold with a star: p < {ALPHA} after "
        f"Holm's correction for all arms, for each metric by itself; {_tests(compared)}."
    )
    told += _alone(compared)
    told += _untested(compared)
    for metric in (one for one in metrics if one.sentences):
        told += _on_seeds_needed(compared, metric)
    return told


def _tests(compared: Compared) -> str:
    """Which test each metric gets."""
    metrics = compared.study.metrics.values()
    told = []
    if over_seeds := [metric.compared_label for metric in metrics if not metric.sentences]:
        told.append(
            f"{join_words(over_seeds)} by a t test over seeds on these very sentences, whose variance each arm shares "
            "with the others as far as they vary alike (Smyth 2004)"
        )
    if over_both := [metric.compared_label for metric in metrics if metric.sentences]:
        told.append(f"{join_words(over_both)} by a t test over seeds and test sentences together")
    return ", ".join(told)


def _on_seeds_needed(compared: Compared, metric: Metric) -> list[str]:
    """What the baseline varies by, and how many seeds would show a difference."""
    base, told = compared.baseline, []
    if base.variances:
        seeds, sentences = math.sqrt(base.variances.seeds), math.sqrt(base.variances.test_set)
        told.append(
            f"Standard deviation of the {metric.label} of {base.arm}: {seeds:.2f} over seeds on this test set, "
            f"{sentences:.2f} over test sets like this one."
        )
    found = [arm.against.differences.get(metric.name) for arm in compared.arms if arm.against]
    if spreads := [one.spread for one in found if one and one.spread]:
        needed = {size: seeds_for(size, spreads) for size in _SIZES}
        numbers = (
            f"{size:g} {metric.label} {_number(seeds) if seeds else 'no number'}" for size, seeds in needed.items()
        )
        told.append(f"Seeds an arm that would likely show a true difference of so much: {', '.join(numbers)}.")
    elif _all_alike(compared.arms, metric):
        told.append(
            "How many seeds would show a difference is not known: the runs of each arm score alike, so that nothing "
            "tells how far another seed would fall."
        )
    return told


def _alone(compared: Compared) -> list[str]:
    """Where the difference of an arm of one seed may lie, which no ± beside its mean can say."""
    notes = []
    for metric in (one for one in compared.study.metrics.values() if not one.sentences):
        tests = {
            arm.arm: arm.against.differences[metric.name].test
            for arm in compared.arms
            if len(arm.runs) == 1 and arm.against and metric.name in arm.against.differences
        }
        digits = metric.compared_digits
        told = [f"{arm} {format_interval(test.interval, digits)}" for arm, test in tests.items() if test.interval]
        what = f"Δ {metric.compared_label} of an arm with one seed, which is taken to vary as the others do"
        notes += [f"95 % interval of {what}: {', '.join(told)}."] if told else []
    return notes


def _all_alike(arms: Sequence[ArmResult], metric: Metric) -> bool:
    """Whether no arm's score varies over its seeds, though some have several."""
    scored = [{run.score(metric.key) for run in arm.runs} for arm in arms if len(arm.runs) > 1]
    return bool(scored) and all(len(values) == 1 for values in scored)


def _untested(compared: Compared) -> list[str]:
    """Why some have no test, hence no star; of the arms that share a reason at once."""
    reasons: dict[tuple[str, str], list[str]] = {}  # (metrics, why) -> arms
    held = {arm.arm: arm.against for arm in compared.arms if arm.against}
    for arm, against in held.items():
        whys: dict[str, list[str]] = {}
        for metric in reversed(compared.study.metrics.values()):
            found = against.differences.get(metric.name)
            if found and found.test.p is None:
                told = re.sub(rf"(?<!\w){re.escape(arm)} has\b", "each has", found.test.why_not)
                whys.setdefault(told, []).append(metric.label)
        for why, metrics in whys.items():
            reasons.setdefault((" and ".join(metrics), why), []).append(arm)
    named = {key: "all others" if len(names) == len(held) > 1 else ", ".join(names) for key, names in reasons.items()}
    return [f"No test of {metrics}, hence no star: {why} ({names})." for (metrics, why), names in named.items()]


def _number(seeds: int) -> str:
    return str(seeds) if seeds <= _MANY else f"over {_MANY}"
