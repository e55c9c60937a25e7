"""What stands below a table: what the marks mean, what the numbers are, and how far they may be trusted."""

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from etude.config.stale import marks_on_code, notes_on_code
from etude.config.studies import value_at
from etude.report.against import ALPHA, Against, seeds_for
from etude.report.comparison import BUDGET, TOLERANCE, ArmResult, Compared
from etude.report.results import Run
from etude.report.statistics import RankCorrelation
from etude.report.wording import ends, fixed, plain, span

_SUPERSCRIPTS = str.maketrans("0123456789", "⁰¹²³⁴⁵⁶⁷⁸⁹")
_BUDGET = "§"
_MANY = 100  # seeds; more than anyone will add
_SIZES = (0.5, 1.0, 2.0)  # of BLEU, for which the seeds needed are told


def marks(compared: Compared) -> dict[str, str]:
    """What stands behind the name of each arm."""
    footnotes = _unequal(compared)
    marked = {}
    for arm in compared.arms:
        numbers = [n for n, arms in enumerate(footnotes.values(), start=1) if arm.arm in arms]
        mark = "".join(str(n).translate(_SUPERSCRIPTS) for n in numbers) + (_BUDGET if arm.budget else "")
        marked[arm.arm] = mark + marks_on_code(run.code for run in arm.runs)
    return marked


def notes(compared: Compared) -> list[str]:
    """Sentences, the meaning of the marks first."""
    runs = [run for arm in compared.arms for run in arm.runs]
    told = [f"{str(n).translate(_SUPERSCRIPTS)} {text}" for n, text in enumerate(_unequal(compared), start=1)]
    told += _budgets(compared.arms)
    told += notes_on_code(run.code for run in runs)
    told += _on_differences(compared)
    told += _conditions_of(compared, runs)
    told += [_on_ranks(compared)] if compared.ranks else []
    unfinished = [f"{arm.arm} (seed {_seeds(arm.unfinished)})" for arm in compared.arms if arm.unfinished]
    return told + ([f"Not finished yet: {', '.join(unfinished)}."] if unfinished else [])


def _seeds(runs: Iterable[Run]) -> str:
    return ", ".join(str(seed) for seed in sorted({run.seed for run in runs}))


def _on_differences(compared: Compared) -> list[str]:
    """What Δ, stars and ± are; with one seed, why there are none."""
    base = compared.baseline
    if not compared.several_seeds:
        return ["One seed an arm: nothing is starred or bold, for it does not say how far another seed would fall."]
    told = [
        f"±: half the 95 % interval of the mean over seeds (Student's t). Δ: ours less that of {base.arm}; bold with a "
        f"star where p < {ALPHA} after Holm's correction for all arms, by Welch's t test over seeds for PPL, on these "
        "very sentences, and for BLEU by a t test over seeds and test sentences together."
    ]
    told += _untested(compared.arms)
    if base.variances:
        seeds, sentences = math.sqrt(base.variances.seeds), math.sqrt(base.variances.test_set)
        told.append(
            f"Standard deviation of the BLEU of {base.arm}: {seeds:.2f} over seeds on this test set, "
            f"{sentences:.2f} over test sets like this one."
        )
    return told + _on_more_seeds({arm.arm: arm.against for arm in compared.arms if arm.against})


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


def _on_more_seeds(against: Mapping[str, Against]) -> list[str]:
    """What more seeds would show of the differences seen, and how many it takes for differences of some sizes."""
    told = []
    more = {arm: one.more_seeds for arm, one in against.items() if one.more_seeds}
    if more:
        numbers = (f"{arm} {_number(number)}" for arm, number in more.items())
        told.append(
            "More seeds that would likely (80 %) show the difference of BLEU seen, if it is the true one: "
            f"{', '.join(numbers)}."
        )
    if hidden := [arm for arm, one in against.items() if one.hidden]:
        told.append(f"On this test set no number of seeds would show the difference of BLEU seen: {', '.join(hidden)}.")
    if any(one.spread for one in against.values()):
        needed = {size: seeds_for(size, against.values()) for size in _SIZES}
        numbers = (f"{size:g} BLEU {_number(seeds) if seeds else 'no number'}" for size, seeds in needed.items())
        told.append(f"Seeds an arm that would likely show a true difference of so much: {', '.join(numbers)}.")
    return told


def _number(seeds: int) -> str:
    return str(seeds) if seeds <= _MANY else f"over {_MANY}"


def _budgets(arms: Sequence[ArmResult]) -> list[str]:
    """What the arms were given that differs from the baseline's, by kind."""
    told = []
    for what in BUDGET.values():
        if multiples := [f"{arm.arm} {arm.budget[what]:.2f}" for arm in arms if what in arm.budget]:
            told.append(f"{what}: {', '.join(multiples)}")
    meaning = f"{_BUDGET} Not the baseline's budget, by more than {100 * TOLERANCE:.0f} %; as a multiple of it"
    return [f"{meaning}: {'; '.join(told)}."] if told else []


def _conditions_of(compared: Compared, runs: Sequence[Run]) -> list[str]:
    """Under which conditions, measured on what and how."""
    signatures = sorted({str(value_at(run.result, "test.signature")) for run in runs})
    ours = (
        ", ".join(f"{key}={value}" for key, value in compared.setting.items()),
        f"{span(run.result['steps'] for run in runs)} steps",
        f"seed {_seeds(runs)}",
        f"tested on {span(value_at(run.result, 'test.sentences') for run in runs)} sentences",
        "perplexity per word piece",
    )
    told = [f"Ours: {'; '.join(ours)}.", f"sacreBLEU: {' or '.join(signatures)}"] if runs else []
    paper = compared.study.paper
    return told + ([f"Paper: {paper.source}; {paper.test_set}."] if paper.arms else [])


def _on_ranks(compared: Compared) -> str:
    """Whether the arms stand in the paper's order."""
    unknown = {ranks.spearman.why_not for ranks in compared.ranks.values() if ranks.spearman.value is None}
    known = [
        f"{name.upper()} ρ {_correlation(ranks.spearman)}, τ {_correlation(ranks.kendall)}"
        for name, ranks in compared.ranks.items()
        if ranks.spearman.value is not None
    ]
    if not known:
        return f"No rank correlation with the paper, for {'; '.join(sorted(unknown))}."
    return f"Rank correlation with the paper, and its 95 % interval: {'; '.join(known)}."


def _correlation(found: RankCorrelation) -> str:
    told = "–" if found.value is None else fixed(found.value, 2)
    return f"{told} {ends(found.interval, 2)}" if found.interval else told


def _unequal(compared: Compared) -> dict[str, list[str]]:
    """What makes arms no equal comparison with the baseline, and which: text -> arms."""
    found: dict[str, list[str]] = {}
    if compared.baseline.runs:
        base = _conditions(compared.baseline.runs[0])
        for arm in compared.arms:
            if text := _difference(arm.runs, base):
                found.setdefault(text, []).append(arm.arm)
    return found


def _difference(runs: Sequence[Run], base: dict[str, Any]) -> str:
    differing: dict[str, str] = {}
    for run in runs:
        theirs = _conditions(run)
        for key in theirs | base:
            if theirs.get(key) != base.get(key):
                differing[key] = f"{key} {plain(theirs.get(key))} (baseline: {plain(base.get(key))})"
    return f"Not an equal comparison: {', '.join(differing.values())}." if differing else ""


def _conditions(run: Run) -> dict[str, Any]:
    budget = {f"budget.{key}": value for key, value in (run.config.get("budget") or {}).items() if key != "steps"}
    choices = {group: run.chosen(group) for group in ("data", "scale")}
    found = {key: value_at(run.result, key) for key in ("store", "test.sentences", "test.tokens", "test.signature")}
    return budget | choices | found
