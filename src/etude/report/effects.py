"""What the changes of a study do in each other's company: effects of a grid, and parts that help alone only."""

from collections.abc import Mapping
from dataclasses import replace
from itertools import combinations

from etude.report.comparison import ALPHA, Compared, Difference
from etude.report.statistics import Comparison, Effect, fit_effects, holm
from etude.report.wording import format_fixed, format_interval, join_words
from etude.study.arms import override_key
from etude.study.metrics import Metric

_SHARED = "arms that differ in decoding alone share their trainings, and with these the luck of seeds"


def effects_of(compared: Compared) -> tuple[list[Effect], dict[tuple[tuple[str, str], ...], float]]:
    """Estimate the effects of a study's grid by its leading metric; also return p of each after Holm's correction.

    There are none if the study has no grid, or some arm of it has no score that is comparable with the baseline's.
    """
    study, name = compared.study, compared.study.lead.name
    scores = {arm.arm: arm.scores[name] for arm in compared.arms if name in arm.scores and not arm.diverged}
    if len(study.grid) < 3 or not study.grid.keys() <= scores.keys():
        return [], {}
    found = fit_effects(study.grid, [scores[arm] for arm in study.grid])
    if len({arm.training for arm in compared.arms if arm.arm in study.grid}) < len(study.grid):
        return [
            replace(one, plain=Comparison(one.test.difference, None, None, _SHARED), moderated=None) for one in found
        ], {}
    tested = {str(n): p for n, one in enumerate(found) if (p := one.test.p) is not None}
    corrected = holm(tested)
    return found, {found[int(n)].values: p for n, p in corrected.items()}


def on_effects(compared: Compared) -> list[str]:
    """Report the effects of the grid's values, and what two of them do together, one sentence a pair."""
    found, corrected = effects_of(compared)
    metric, grid = compared.study.lead, compared.study.grid
    if not found:
        lacks = [
            arm.arm for arm in compared.arms if arm.arm in grid and (arm.diverged or metric.name not in arm.scores)
        ]
        few = 0 < len(lacks) < len(grid)
        return [f"No effects of the grid: no mean that compares of {join_words(lacks)}."] if few else []
    mains = [one for one in found if len(one.values) == 1]
    alone = "; ".join(f"{name_values(one)} {_estimate(one, metric, corrected)}" for one in mains)
    how = "over seeds (moderated)" if all(one.moderated for one in found) else "of what the model leaves over"
    sure = f"with 95 % intervals from the variance {how}; * after Holm over all effects"
    if any(one.plain.why_not == _SHARED for one in found):
        sure = f"without intervals, because {_SHARED}"
    told = [f"Effects on {metric.compared_label} in the grid, averaged over the other keys, {sure}: {alone}."]
    told += [f"{name_values(one)}: {_together(one, metric, corrected)}." for one in found if len(one.values) == 2]
    return [*told, *_on_aliases(grid)]


def _on_aliases(grid: Mapping[str, Mapping[str, str]]) -> list[str]:
    """Say which effects of a fraction are aliased, which the whole grid tells apart, and its resolution."""
    first, *_ = rows = [*grid.values()]
    bits = {key: found for key in first if any(found := [row[key] != first[key] for row in rows])}
    columns: dict[tuple[bool, ...], list[str]] = {}
    lengths = []
    for size in range(len(bits) + 1):
        for keys in combinations(bits, size):
            column = tuple(sum(of) % 2 == 1 for of in zip(*(bits[key] for key in keys), strict=True)) if keys else ()
            if size and not any(column):
                lengths.append(size)
            elif size in (1, 2):
                columns.setdefault(column, []).append(" × ".join(map(_short, keys)))
    groups = [" = ".join(names) for names in columns.values() if len(names) > 1]
    if not lengths:
        return []
    resolution = min(lengths)
    aliased = f": aliased are {'; '.join(groups)}" if groups else ", which tells all pairs apart"
    caution = "; effects hold if no two keys act on each other" if resolution == 3 else ""
    return [f"A fraction of resolution {_ROMAN.get(resolution, str(resolution))}{aliased}{caution}."]


_ROMAN = {3: "III", 4: "IV", 5: "V", 6: "VI", 7: "VII", 8: "VIII"}


def _short(key: str) -> str:
    return key.rpartition("/")[2].rpartition(".")[2]


def name_values(effect: Effect, at: int | None = None) -> str:
    """Name the values of an effect, or the one at a place: "heads=4 and position=rope"."""
    values = effect.values if at is None else effect.values[at : at + 1]
    return " and ".join(f"{_short(key)}={value}" for key, value in values)


def _estimate(effect: Effect, metric: Metric, corrected: dict[tuple[tuple[str, str], ...], float]) -> str:
    test, digits = effect.test, metric.compared_digits
    interval = f" {format_interval(test.interval, digits)}" if test.interval else ""
    star = "*" * (corrected.get(effect.values, 1.0) < ALPHA)
    return f"{format_fixed(test.difference, digits, True)}{interval}{star}"


def _together(effect: Effect, metric: Metric, corrected: dict[tuple[tuple[str, str], ...], float]) -> str:
    test, digits = effect.test, metric.compared_digits
    better = (test.difference < 0) == (metric.better == "lower")
    sign = -1 if test.difference < 0 else 1
    low, high = sorted(sign * end for end in test.interval) if test.interval else (None, None)
    interval = "" if low is None or high is None else f" [{format_fixed(low, digits)}, {format_fixed(high, digits)}]"
    star = "*" * (corrected.get(effect.values, 1.0) < ALPHA)
    return f"together {format_fixed(abs(test.difference), digits)}{interval} {_BETTER[better]} than the sum{star}"


_BETTER = {True: "better", False: "worse"}


def on_company(compared: Compared) -> list[str]:
    """Name the parts that help the baseline, and whose loss does no harm to the arm that has them all."""
    study, base = compared.study, compared.study.arms[compared.study.baseline]
    arms = {arm.arm: arm for arm in compared.arms}
    name, told = study.lead.name, []
    for without, whole in study.against.items():
        left_out = [word for word in study.arms[whole] if word not in study.arms[without]]
        alone = next((arm for arm, words in study.arms.items() if [w for w in words if w not in base] == left_out), "")
        one, other = (
            found.differences.get(name) if arm in arms and (found := arms[arm].against) else None
            for arm in (alone, without)
        )
        if len(left_out) == 1 and one and other and _gains(one, study.lead) and not _loses(other, study.lead):
            key = override_key(left_out[0]).rpartition("/")[2]
            told.append(
                f"{key} helps alone ({alone} against {study.baseline}), and not among the others of {whole} ({without} "
                "is not shown to be worse)."
            )
    return told


def _gains(one: Difference, metric: Metric) -> bool:
    return one.star and (one.test.difference < 0) == (metric.better == "lower")


def _loses(one: Difference, metric: Metric) -> bool:
    return one.star and not _gains(one, metric)
