"""What is said below a table of its differences: what they are, which have a star, and why others have none."""

import math
import re
from collections.abc import Sequence

from etude.report.comparison import ArmResult, Compared
from etude.report.significance import ALPHA, seeds_for
from etude.report.wording import ends
from etude.studies.study import value_at

_MANY = 100  # seeds; more than anyone will add
_SIZES = (0.5, 1.0, 2.0)  # of BLEU, for which the seeds needed are told
_DIGITS = 3  # of nats


def on_differences(compared: Compared) -> list[str]:
    """What Δ, stars and ± are; with one seed, why there are none."""
    base = compared.baseline
    others = {arm.arm: arm.against.reference for arm in compared.arms if arm.against}
    elsewhere = [f"{arm} against {other}" for arm, other in others.items() if other != base.arm]
    told = [f"Held against another arm than {base.arm}: {', '.join(elsewhere)}."] if elsewhere else []
    whose = "ours" if compared.study.paper.arms else "an arm's"
    nats = f"Δ ln PPL: {whose} less that of {base.arm}, in nats a token."
    if not compared.several_seeds:
        alone = "One seed an arm: nothing is starred or bold, for it does not say how far another seed would fall."
        return [*told, f"{nats} {alone}"]
    told.append(
        f"±: half the 95 % interval of the mean over seeds (Student's t). {nats} Bold with a star: p < {ALPHA} after "
        "Holm's correction for all arms, for each metric by itself; ln PPL by a t test over seeds on these very "
        "sentences, whose variance each arm shares with the others as far as they vary alike (Smyth 2004), BLEU by a "
        "t test over seeds and test sentences together."
    )
    told += _alone(compared.arms)
    told += _untested(compared.arms)
    if base.variances:
        seeds, sentences = math.sqrt(base.variances.seeds), math.sqrt(base.variances.test_set)
        told.append(
            f"Standard deviation of the BLEU of {base.arm}: {seeds:.2f} over seeds on this test set, "
            f"{sentences:.2f} over test sets like this one."
        )
    found = [arm.against for arm in compared.arms if arm.against]
    if any(one.spread for one in found):
        needed = {size: seeds_for(size, found) for size in _SIZES}
        numbers = (f"{size:g} BLEU {_number(seeds) if seeds else 'no number'}" for size, seeds in needed.items())
        told.append(f"Seeds an arm that would likely show a true difference of so much: {', '.join(numbers)}.")
    elif _all_alike(compared.arms):
        told.append(
            "How many seeds would show a difference is not known: the runs of each arm score alike, so that nothing "
            "tells how far another seed would fall."
        )
    return told


def _alone(arms: Sequence[ArmResult]) -> list[str]:
    """Where the difference of an arm of one seed may lie, which no ± beside its mean can say."""
    found = {
        arm.arm: arm.against.ppl.interval for arm in arms if len(arm.runs) == 1 and arm.against and arm.against.ppl
    }
    told = [f"{arm} {ends(interval, _DIGITS)}" for arm, interval in found.items() if interval]
    meaning = "95 % interval of Δ ln PPL of an arm with one seed, which is taken to vary as the others do"
    return [f"{meaning}: {', '.join(told)}."] if told else []


def _all_alike(arms: Sequence[ArmResult]) -> bool:
    """Whether no arm's BLEU varies over its seeds, though some have several."""
    scored = [{value_at(run.result, "test.bleu") for run in arm.runs} for arm in arms if len(arm.runs) > 1]
    return bool(scored) and all(len(values) == 1 for values in scored)


def _untested(arms: Sequence[ArmResult]) -> list[str]:
    """Why some have no test, hence no star; of the arms that share a reason at once."""
    reasons: dict[tuple[str, str], list[str]] = {}  # (metrics, why) -> arms
    held = {arm.arm: arm.against for arm in arms if arm.against}
    for arm, against in held.items():
        whys: dict[str, list[str]] = {}
        for what, found in (("BLEU", against.bleu), ("PPL", against.ppl)):
            if found and found.p is None:
                told = re.sub(rf"(?<!\w){re.escape(arm)} has\b", "each has", found.why_not)
                whys.setdefault(told, []).append(what)
        for why, metrics in whys.items():
            reasons.setdefault((" and ".join(metrics), why), []).append(arm)
    named = {key: "all others" if len(names) == len(held) > 1 else ", ".join(names) for key, names in reasons.items()}
    return [f"No test of {metrics}, hence no star: {why} ({names})." for (metrics, why), names in named.items()]


def _number(seeds: int) -> str:
    return str(seeds) if seeds <= _MANY else f"over {_MANY}"
