"""What a report says: rows of cells, and the notes below them. How it looks is decided in `table.py`."""

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from etude.config.studies import Study, value_at
from etude.report.results import Run, Selection

_SCORES = {"PPL": ("test.perplexity", "ppl", 2), "BLEU": ("test.bleu", "bleu", 1)}
_SUPERSCRIPTS = str.maketrans("0123456789", "⁰¹²³⁴⁵⁶⁷⁸⁹")


@dataclass(frozen=True)
class Column:
    """A printed column."""

    header: str
    whose: str = ""  # "ours" or "paper", where it holds what was measured
    about_arm: bool = False  # where it says what the arm is
    words: bool = False  # where it holds words rather than numbers


@dataclass(frozen=True)
class Row:
    """One arm: its cells in the order of the columns."""

    group: str  # "A" for A1, A2, ...; rules separate the groups
    cells: list[str]
    run: bool  # whether there is a result


@dataclass
class Rows:
    """A whole table, not yet drawn."""

    title: str
    columns: list[Column]
    rows: list[Row] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


def make_rows(study: Study, selection: Selection) -> Rows:
    """The study's table as the paper prints it, filled with the selected runs."""
    by_arm = {arm: [run for run in selection.runs if run.arm == arm] for arm in study.arms}
    begun = {run.arm for run in selection.unfinished}
    baseline = next(iter(by_arm[study.baseline]), None)
    seeds = max(len(runs) for runs in by_arm.values()) > 1
    table = Rows(study.title, _columns(study, selection.runs, seeds))
    footnotes: list[str] = []
    for arm, runs in by_arm.items():
        mark = ""
        if baseline and (difference := _difference(runs, baseline)):
            footnotes += [] if difference in footnotes else [difference]
            mark = str(footnotes.index(difference) + 1).translate(_SUPERSCRIPTS)
        cells = [arm + mark, *_description(study, runs, None if arm == study.baseline else baseline)]
        cells += _numbers(study, runs, study.paper.arms.get(arm, {}), "begun" if arm in begun else "not run")
        cells += [str(len(runs) or "")] if seeds else []
        table.rows.append(Row(_group(arm), cells, bool(runs)))
    table.notes += [f"{str(n).translate(_SUPERSCRIPTS)} {text}" for n, text in enumerate(footnotes, start=1)]
    table.notes += [*_statement(study, selection, seeds), *selection.notes]
    return table


def _columns(study: Study, runs: Sequence[Run], seeds: bool) -> list[Column]:
    columns = [Column("arm", words=True)]
    for header, key in study.columns.items():
        words = any(isinstance(value_at(run.config, key), str) for run in runs)
        columns.append(Column(header, about_arm=True, words=words))
    for header in (*_SCORES, "params ×10⁶"):
        columns += [Column(header, "ours")] + ([Column(header, "paper")] if study.paper.arms else [])
    return columns + ([Column("seeds")] if seeds else [])


def _group(arm: str) -> str:
    """A of A1, A2, ...; position of position-rope, position-t5, ..."""
    match = re.fullmatch(r"([A-Za-z]+)\d+|([A-Za-z]+)-.+", arm)
    return match[1] or match[2] if match else arm


def _description(study: Study, runs: Sequence[Run], baseline: Run | None) -> list[str]:
    """What the arm is, blank where it is as the baseline."""
    if not runs:
        return [""] * len(study.columns)
    cells = []
    for key in study.columns.values():
        ours = _plain(value_at(runs[0].config, key))
        cells.append("" if baseline and ours == _plain(value_at(baseline.config, key)) else ours)
    return cells


def _numbers(study: Study, runs: Sequence[Run], printed: Mapping[str, float | None], absent: str) -> list[str]:
    """PPL, BLEU and parameters: ours, and what the paper printed where there is a paper."""
    cells = []
    for key, name, digits in _SCORES.values():
        cells += [_mean([value_at(run.result, key) for run in runs], digits), _fixed(printed.get(name), digits)]
    cells += [_millions(runs[0].result["parameters"]) if runs else "–", _fixed(printed.get("params_M"), 0)]
    if not runs:
        cells[0] = absent
    return cells if study.paper.arms else cells[::2]


def _difference(runs: Sequence[Run], baseline: Run) -> str:
    """What makes an arm no equal comparison with the baseline: its budget, its data, its scale, its test set."""
    differing: dict[str, str] = {}
    base = _conditions(baseline)
    for run in runs:
        theirs = _conditions(run)
        for key in theirs | base:
            if theirs.get(key) != base.get(key):
                differing[key] = f"{key} {_plain(theirs.get(key))} (baseline: {_plain(base.get(key))})"
    return f"Not an equal comparison: {', '.join(differing.values())}." if differing else ""


def _conditions(run: Run) -> dict[str, Any]:
    budget = {f"budget.{key}": value for key, value in (run.config.get("budget") or {}).items() if key != "steps"}
    choices = {group: run.chosen(group) for group in ("data", "scale")}
    found = {key: value_at(run.result, key) for key in ("store", "test.sentences", "test.tokens", "test.signature")}
    return budget | choices | found


def _statement(study: Study, selection: Selection, seeds: bool) -> list[str]:
    """What the numbers are: under which conditions, measured on what and how."""
    runs = selection.runs
    setting = {key: runs[0].chosen(key) for key in ("data", "scale", "budget")} | runs[0].typed
    signatures = sorted({str(value_at(run.result, "test.signature")) for run in runs})
    ours = (
        ", ".join(f"{key}={value}" for key, value in setting.items()),
        f"{_range(run.result['steps'] for run in runs)} steps",
        f"seed {', '.join(str(seed) for seed in sorted({run.seed for run in runs}))}",
        f"tested on {_range(value_at(run.result, 'test.sentences') for run in runs)} sentences",
        "perplexity per word piece" + (", ± the sample standard deviation over seeds" if seeds else ""),
    )
    notes = [f"Ours: {'; '.join(ours)}.", f"sacreBLEU: {' or '.join(signatures)}"]
    if study.paper.arms:
        notes.append(f"Paper: {study.paper.source}; {study.paper.test_set}.")
    if selection.unfinished:
        names = ", ".join(f"{run.arm} (seed {run.seed})" for run in selection.unfinished)
        notes.append(f"Not finished yet: {names}.")
    return notes


def _mean(values: Sequence[float], digits: int) -> str:
    """The mean, with the sample standard deviation where there are several values."""
    if not values:
        return "–"
    mean = sum(values) / len(values)
    if len(values) == 1:
        return _fixed(mean, digits)
    deviation = math.sqrt(sum((value - mean) ** 2 for value in values) / (len(values) - 1))
    return f"{_fixed(mean, digits)} ± {_fixed(deviation, digits)}"


def _millions(parameters: int) -> str:
    """Parameters in millions, three figures of them."""
    millions = parameters / 1e6
    return f"{millions:.{max(0, 2 - math.floor(math.log10(millions)))}f}" if 0 < millions < 100 else f"{millions:.0f}"


def _fixed(value: float | None, digits: int) -> str:
    return "" if value is None else f"{value:,.{digits}f}"


def _range(values: Iterable[int]) -> str:
    low, *_, high = sorted([*values] * 2)
    return f"{low:,}" if low == high else f"{low:,} to {high:,}"


def _plain(value: Any) -> str:
    """A config value as the paper writes it: 0.1, 100K, sinusoidal."""
    if isinstance(value, int) and not isinstance(value, bool) and value >= 10_000 and value % 1000 == 0:
        return f"{value // 1000}K"
    return "–" if value is None else str(value)
