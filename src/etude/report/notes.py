"""What stands below a table: what the marks mean, what the numbers are, and how far they may be trusted."""

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from statistics import fmean

from etude.config.stale import marks_on_code, notes_on_code
from etude.config.studies import value_at
from etude.report.against import ALPHA, Against, seeds_for
from etude.report.comparison import BUDGET, TOLERANCE, ArmResult, Compared
from etude.report.conditions import unequal
from etude.report.results import Run
from etude.report.statistics import RankCorrelation
from etude.report.wording import ends, fixed, span

_SUPERSCRIPTS = str.maketrans("0123456789", "⁰¹²³⁴⁵⁶⁷⁸⁹")
_BUDGET = "§"
_MANY = 100  # seeds; more than anyone will add
_SIZES = (0.5, 1.0, 2.0)  # of BLEU, for which the seeds needed are told


def marks(compared: Compared) -> dict[str, str]:
    """What stands behind the name of each arm."""
    footnotes = unequal(compared)
    marked = {}
    for arm in compared.arms:
        numbers = [n for n, arms in enumerate(footnotes.values(), start=1) if arm.arm in arms]
        mark = "".join(str(n).translate(_SUPERSCRIPTS) for n in numbers) + (_BUDGET if arm.budget else "")
        marked[arm.arm] = mark + marks_on_code(run.code for run in arm.runs)
    return marked


def notes(compared: Compared) -> list[str]:
    """Sentences, the meaning of the marks first."""
    runs = [run for arm in compared.arms for run in arm.runs]
    told = [f"{str(n).translate(_SUPERSCRIPTS)} {text}" for n, text in enumerate(unequal(compared), start=1)]
    told += _budgets(compared.arms)
    told += notes_on_code(run.code for run in runs)
    told += compared.notes
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
        f"star where p < {ALPHA} after Holm's correction for all arms, for each metric by itself, by Welch's t test "
        "over seeds for PPL, on these very sentences, and for BLEU by a t test over seeds and test sentences together."
    ]
    told += _untested(compared.arms)
    if base.variances:
        seeds, sentences = math.sqrt(base.variances.seeds), math.sqrt(base.variances.test_set)
        told.append(
            f"Standard deviation of the BLEU of {base.arm}: {seeds:.2f} over seeds on this test set, "
            f"{sentences:.2f} over test sets like this one."
        )
    return told + _on_more_seeds({arm.arm: arm.against for arm in compared.arms if arm.against}, base.arm)


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


def _on_more_seeds(against: Mapping[str, Against], base: str) -> list[str]:
    """What more seeds would show of the differences seen, and how many it takes for differences of some sizes."""
    told = []
    more = {arm: one.more_seeds for arm, one in against.items() if one.more_seeds}
    if more:
        numbers = (f"{arm} {_number(number)}" for arm, number in more.items())
        told.append(
            f"More seeds of both the arm and {base} that would likely (80 %) show the difference of BLEU seen, if it "
            f"is the true one: {', '.join(numbers)}."
        )
    if hidden := [arm for arm, one in against.items() if one.hidden]:
        told.append(
            "On this test set no number of seeds would show the difference of BLEU seen, if it is the true one: "
            f"{', '.join(hidden)}."
        )
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
    told += [f"Paper: {paper.source}; {paper.test_set}."] if paper.arms else []
    return told + _by_the_papers_recipe(compared)


def _by_the_papers_recipe(compared: Compared) -> list[str]:
    """How far sacreBLEU is from what Vaswani et al. call BLEU, by the example of the baseline."""
    base, printed = compared.baseline, compared.study.paper.arms.values()
    scored = [value_at(run.result, "test.paper_bleu") for run in base.runs]
    known = all(isinstance(score, int | float) for score in scored)
    if base.bleu is None or not known or all(numbers.get("bleu") is None for numbers in printed):
        return []
    return [
        "BLEU is sacreBLEU here, and in Vaswani et al. 2017 that of tokenised text with German compounds split: the "
        f"mean of {base.arm} is {fixed(base.bleu.value, 2)} by the one, {fixed(fmean(scored), 2)} by the other."
    ]


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
