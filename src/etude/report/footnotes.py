"""What stands below a table: what the marks mean, what the numbers are, and how far they may be trusted."""

from collections.abc import Iterable, Sequence
from statistics import fmean

from etude.report.comparison import BUDGET, TOLERANCE, ArmResult, Compared
from etude.report.confounds import find_confounds
from etude.report.differences import on_differences
from etude.report.statistics import RankCorrelation
from etude.report.wording import format_fixed, format_interval, format_range, format_value
from etude.runs.provenance import marks_on_code, notes_on_code, notes_on_libraries
from etude.runs.records import Run
from etude.studies.study import value_at

_SUPERSCRIPTS = str.maketrans("0123456789", "⁰¹²³⁴⁵⁶⁷⁸⁹")
_BUDGET = "§"


def marks(compared: Compared) -> dict[str, str]:
    """What stands behind the name of each arm."""
    footnotes = find_confounds(compared)
    marked = {}
    for arm in compared.arms:
        numbers = [n for n, arms in enumerate(footnotes.values(), start=1) if arm.arm in arms]
        mark = "".join(str(n).translate(_SUPERSCRIPTS) for n in numbers) + (_BUDGET if arm.budget else "")
        marked[arm.arm] = mark + marks_on_code(run.code for run in arm.runs)
    return marked


def notes(compared: Compared) -> list[str]:
    """Sentences: how far the paper is borne out, the meaning of the marks, then the rest."""
    runs = [run for arm in compared.arms for run in arm.runs]
    told = _on_agreement(compared) + _on_tuning(compared)
    told += [f"{str(n).translate(_SUPERSCRIPTS)} {text}" for n, text in enumerate(find_confounds(compared), start=1)]
    told += _budgets(compared.arms)
    told += notes_on_code(run.code for run in runs) + notes_on_libraries(run.result for run in runs)
    told += compared.notes
    told += _on_seeds(compared)
    told += on_differences(compared)
    told += _conditions_of(compared, runs)
    told += [_on_ranks(compared)] if compared.ranks else []
    unfinished = [f"{arm.arm} (seed {_seeds(arm.unfinished)})" for arm in compared.arms if arm.unfinished]
    return told + ([f"Not finished yet: {', '.join(unfinished)}."] if unfinished else [])


def _seeds(runs: Iterable[Run]) -> str:
    return ", ".join(str(seed) for seed in sorted({run.seed for run in runs}))


def _on_tuning(compared: Compared) -> list[str]:
    """Which values suit each arm best, and how many were tried."""
    tuned = compared.tuned
    arms = {arm.arm for arm in tuned.compared.arms if arm.runs} if tuned else set()
    if tuned is None or not arms:
        return []
    keys = [*compared.study.tune]
    chosen: dict[str, list[str]] = {}
    for arm, values in tuned.values.items():
        if arm in arms:
            told = ", ".join(f"{key}={format_value(value)}" for key, value in zip(keys, values, strict=True))
            chosen.setdefault(told, []).append(arm)
    numbers = sorted({tuned.trials[arm] for arm in arms if arm in tuned.trials})
    trials = f"{numbers[0]}" if len(numbers) == 1 else f"{numbers[0]} to {numbers[-1]}"
    best = "; ".join(f"{told}: {', '.join(names)}" for told, names in chosen.items())
    pilots = ", ".join(map(str, compared.study.pilots))
    return [
        f"tuned: each arm with the best of {trials} values, by validation loss on seed {pilots}, which the table does "
        f"not hold: {best}.",
        *(sentence.replace("Agreement", "Tuned: agreement", 1) for sentence in _on_agreement(tuned.compared)[:1]),
    ]


def _on_agreement(compared: Compared) -> list[str]:
    """How far the study agrees with its paper: the line that a reader looks for first."""
    lead = compared.study.lead
    found, ranks = compared.agreement, compared.ranks.get(lead.name)
    if found is None:
        return []
    right, large = found.signs
    shown, within, ties = found.ties
    margin = f"±{found.criteria.margin:g} nats"
    of_ties = f"ties {shown} of {ties} within {margin}"
    if not compared.several_seeds:
        of_ties = f"ties {within} of {ties} within {margin} (one seed: not tested)"
    elif within > shown:
        of_ties = f"ties {shown} of {ties} shown to be within {margin} ({within} by their means)"
    told = [f"signs {right} of {large}", of_ties]
    if ranks and ranks.spearman.value is not None:
        told.append(f"ρ {_correlation(ranks.spearman)}")
    line = found.line
    if line.r is not None and line.slope is not None and line.slope_interval:
        interval = f" {format_interval(line.r_interval, 2)}" if line.r_interval else ""
        told.append(f"r {format_fixed(line.r, 2)}{interval}")
        told.append(f"slope {format_fixed(line.slope, 2)} {format_interval(line.slope_interval, 2)}")
    against_paper = [point.arm for point in found.points.values() if point.large and not point.agrees]
    apart = [point.arm for point in found.points.values() if not point.large and not point.agrees]
    sentences = [f"Agreement with the paper in {lead.compared_label}: {', '.join(told)}."]
    if against_paper or apart:
        parts = [f"{', '.join(against_paper)} with another sign" if against_paper else ""]
        parts += [f"{', '.join(apart)} no tie" if apart else ""]
        sentences.append(f"Not as in the paper: {'; '.join(filter(None, parts))}.")
    sentences.append(
        f"Signs: of the arms whose {lead.compared_label} differs from {compared.baseline.arm}'s by more than "
        f"{found.criteria.large:g} nats in the paper; the others are ties. r and slope: over {line.points} "
        "differences; all intervals are of 95 %."
    )
    return sentences


def _on_seeds(compared: Compared) -> list[str]:
    """Whether as many were run as the study fixed beforehand."""
    fixed_before = compared.study.seeds
    counts = {arm.arm: len(arm.runs) + len(arm.diverged) for arm in compared.arms if arm.runs or arm.diverged}
    more = [arm for arm, seeds in counts.items() if fixed_before and seeds > fixed_before]
    fewer = [arm for arm, seeds in counts.items() if fixed_before and seeds < fixed_before]

    def names(arms: Sequence[str]) -> str:
        return "all arms" if len(arms) == len(counts) > 1 else ", ".join(arms)

    told = []
    if more:
        told.append(
            f"More seeds than the {fixed_before} that the study fixes: {names(more)}. Seeds added after a look at the "
            "table make false stars more likely: whoever looks after each seed from 3 to 10 gives one in 14 % of "
            "comparisons, not in 5 %."
        )
    if fewer:
        told.append(f"Fewer seeds than the {fixed_before} that the study fixes: {names(fewer)}.")
    return told


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
    if not runs:
        return []
    metrics = compared.study.metrics.values()
    signatures = {
        m.scorer: sorted({str(told) for run in runs if (told := value_at(run.result, m.signature))}) for m in metrics
    }
    ours = (
        ", ".join(f"{key}={value}" for key, value in compared.setting.items()),
        f"{format_range(run.result['steps'] for run in runs)} steps",
        f"seed {_seeds(runs)}",
        _tested_on(runs, ", ".join(metric.label for metric in metrics if metric.over == "text")),
        *(f"{metric.label} per word piece" for metric in metrics if metric.over == "tokens"),
    )
    paper = compared.study.paper
    whose = "Ours" if paper.arms else "All arms"
    told = [f"{whose}: {'; '.join(ours)}."]
    told += [f"{scorer}: {' or '.join(found)}" for scorer, found in signatures.items() if found]
    told += [f"Paper: {paper.source}; {paper.test_set}."] if paper.arms else []
    return told + _by_the_papers_recipe(compared)


def _tested_on(runs: Sequence[Run], scores: str) -> str:
    """How many sentences; `scores` of translations may be of the first of them only."""
    translated = [value_at(run.result, "test.sentences") for run in runs]
    whole = [value_at(run.result, "test.pairs") or one for run, one in zip(runs, translated, strict=True)]
    told = f"tested on {format_range(whole)} sentences"
    return told if whole == translated else f"{told}, {scores} on the first {format_range(translated)} of them"


def _by_the_papers_recipe(compared: Compared) -> list[str]:
    """How far sacreBLEU is from what Vaswani et al. call BLEU, by the example of the baseline."""
    base, metrics = compared.baseline, compared.study.metrics.values()
    metric = next((one for one in metrics if one.sentences and one.name in compared.study.printed), None)
    scored = [value_at(run.result, "test.paper_bleu") for run in base.runs]
    known = all(isinstance(score, int | float) for score in scored)
    if metric is None or metric.name not in base.means or not known:
        return []
    return [
        "BLEU is sacreBLEU here, and in Vaswani et al. 2017 that of tokenised text with German compounds split: the "
        f"mean of {base.arm} is {format_fixed(base.means[metric.name].value, 2)} by the one, "
        f"{format_fixed(fmean(scored), 2)} by the other."
    ]


def _on_ranks(compared: Compared) -> str:
    """Whether the arms stand in the paper's order."""
    unknown = {ranks.spearman.why_not for ranks in compared.ranks.values() if ranks.spearman.value is None}
    known = [
        f"{compared.study.metrics[name].label} ρ {_correlation(ranks.spearman)}, τ {_correlation(ranks.kendall)}"
        for name, ranks in compared.ranks.items()
        if ranks.spearman.value is not None
    ]
    if not known:
        return f"No rank correlation with the paper, for {'; '.join(sorted(unknown))}."
    return f"Rank correlation with the paper, and its 95 % interval: {'; '.join(known)}."


def _correlation(found: RankCorrelation) -> str:
    told = "–" if found.value is None else format_fixed(found.value, 2)
    return f"{told} {format_interval(found.interval, 2)}" if found.interval else told
