"""The content of a report: rows of cells, and notes. `terminal.py`, `latex.py` and `html/table.py` render it."""

import math
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from etude.report.comparison import ArmResult, Compared
from etude.report.footnotes import marks, notes
from etude.report.statistics import Mean
from etude.report.wording import format_fixed, format_millions, format_value
from etude.runs.run_state import State
from etude.studies.metrics import Metric
from etude.studies.study import value_at

_PARAMETERS = "params ×10⁶"
DELTA = "Δ"
STAR = "*"

Cell = Callable[[ArmResult], str]


@dataclass(frozen=True)
class Column:
    """A printed column."""

    header: str
    whose: str = ""  # "ours", "paper", "tuned" (each arm at its own best value), or "Δ" (arm minus baseline)
    about_arm: bool = False  # a config value of the arm
    words: bool = False  # words rather than numbers
    starred: bool = False  # its numbers may have a star
    breaks: bool = False  # a table that is too wide is broken before this column

    def has_star(self, cell: str) -> bool:
        """Whether a cell has a star; a config value that ends with an asterisk has none."""
        return self.starred and cell.endswith(STAR)


@dataclass(frozen=True)
class Row:
    """The row of one arm: its cells in the order of the columns."""

    group: str  # "A" for A1, A2, ...; rules separate the groups
    cells: list[str]
    run: bool  # whether the arm has a result


@dataclass
class Rows:
    """The content of a table, before rendering."""

    name: str  # of the study
    title: str
    columns: list[Column]
    rows: list[Row] = field(default_factory=list)  # one per arm
    notes: list[str] = field(default_factory=list)  # on the numbers, the marks, and runs that diverged
    left_out: list[str] = field(default_factory=list)  # which runs were not selected, and why


def is_command(note: str) -> bool:
    """Whether a note is a command to be pasted, which must not be wrapped or escaped."""
    return note.startswith("etude ")


def make_rows(compared: Compared) -> Rows:
    """Make the study's table, in the layout of the paper, from the comparison of its arms."""
    study = compared.study
    columns, cells = zip(*_columns(compared), strict=True)
    rows = []
    for arm in compared.arms:
        row = [cell(arm) for cell in cells]
        if not arm.runs:  # its state replaces its first score
            row[1 + len(study.columns)] = state_of(arm)
        match = re.fullmatch(r"([A-Za-z]+)\d+|([A-Za-z]+)-.+|([^ =]+)=.*", arm.arm)  # A1; position-rope; model.heads=2
        group = next(filter(None, match.groups())) if match else arm.arm
        rows.append(Row(group, row, bool(arm.runs)))
    return Rows(study.name, study.title, list(columns), rows, notes(compared), compared.left_out)


def state_of(arm: ArmResult) -> str:
    """Return the state of an arm without a score."""
    failed = all(run.state is State.FAILED for run in arm.unfinished)
    return "diverged" if arm.diverged else "not run" if not arm.unfinished else "failed" if failed else "begun"


def _columns(compared: Compared) -> Iterator[tuple[Column, Cell]]:
    """Yield the columns of a study's table, each with the function that makes an arm's cell."""
    study, marked = compared.study, marks(compared)
    yield Column("arm", words=True), lambda arm: arm.arm + marked[arm.arm]
    configs = [run.config for arm in compared.arms for run in arm.runs]
    for header, key in study.columns.items():
        words = any(isinstance(value_at(config, key), str | bool | list) for config in configs)
        yield Column(header, about_arm=True, words=words), _describe(key, compared)
    paper, ours = bool(study.paper.arms), "ours" if study.paper.arms else ""
    for place, metric in enumerate(study.metrics.values()):
        yield from _metric_columns(metric, compared, ours, breaks=place > 0)
    yield Column(_PARAMETERS, ours), lambda arm: format_millions(arm.costs["parameters"])
    if paper:
        yield Column(_PARAMETERS, "paper"), lambda arm: _format_printed(arm, "params_M", 0)
    if compared.several_seeds:
        yield Column("seeds"), _seeds


def _metric_columns(metric: Metric, compared: Compared, ours: str, breaks: bool) -> Iterator[tuple[Column, Cell]]:
    """Yield a metric's columns: mean and difference, ours and the paper's.

    For a logarithmic metric the difference is of logarithms, and the paper's is shown too.
    """
    name, digits = metric.name, metric.digits
    paper = name in compared.study.printed
    header = f"{DELTA} {metric.compared_label}"
    yield Column(metric.label, ours, breaks=breaks), lambda arm: _mean(arm.means.get(name), digits)
    if compared.several_seeds and not metric.is_log:
        yield Column(metric.label, DELTA, starred=True), lambda arm: _difference(arm, metric)
    if paper:
        yield Column(metric.label, "paper"), lambda arm: _format_printed(arm, name, digits)
    if metric.is_log:
        yield Column(header, ours, starred=True), lambda arm: _difference(arm, metric)
    if metric.is_log and paper:
        yield Column(header, "paper"), lambda arm: _papers_difference(arm, metric, compared)
    if metric.is_log and metric == compared.study.lead:  # each arm at its best value; agreement with the paper
        if compared.tuned:
            tuned = {arm.arm: arm for arm in compared.tuned.arms}
            yield Column(header, "tuned", starred=True), lambda arm: _difference(tuned[arm.arm], metric)
        if compared.agreement:
            yield Column("agrees", words=True), lambda arm: _agrees(arm, compared)


def _describe(key: str, compared: Compared) -> Cell:
    """Make the function that shows an arm's config value at `key`, blank if it equals the baseline's."""
    base = [value_at(run.config, key) for run in compared.baseline.runs[:1]]

    def cell(arm: ArmResult) -> str:
        values = [value_at(run.config, key) for run in arm.runs[:1]]
        return "" if arm is not compared.baseline and values == base else "".join(map(format_value, values))

    return cell


def _seeds(arm: ArmResult) -> str:
    """Format the number of seeds in the means; if some diverged, also the number of finished runs: "2 of 3"."""
    finished = len(arm.runs) + len(arm.diverged)
    return f"{len(arm.runs)} of {finished}" if arm.diverged else str(finished or "")


def _mean(mean: Mean | None, digits: int) -> str:
    """Format a mean, with half of its interval if it has one."""
    if mean is None:
        return "–"
    if not mean.interval:
        return format_fixed(mean.value, digits)
    half, least = mean.interval.high - mean.value, 10.0**-digits
    about = format_fixed(half, digits) if half >= least / 2 else f"<{format_fixed(least, digits)}"
    return f"{format_fixed(mean.value, digits)} ± {about}"


def _difference(arm: ArmResult, metric: Metric) -> str:
    """Format the difference from the reference arm, with its sign, and a star if it is significant."""
    found = arm.against.differences.get(metric.name) if arm.against else None
    if found is None:
        return ""
    return format_fixed(found.test.difference, metric.compared_digits, sign=True) + (STAR if found.star else "")


def _papers_difference(arm: ArmResult, metric: Metric, compared: Compared) -> str:
    reference = compared.study.paper.arms.get(compared.study.reference(arm.arm), {})
    theirs, base = arm.paper.get(metric.name), reference.get(metric.name)
    if not theirs or not base or arm is compared.baseline:
        return ""
    return format_fixed(math.log(theirs / base), metric.compared_digits, sign=True)


def _agrees(arm: ArmResult, compared: Compared) -> str:
    """Format whether an arm agrees with the paper: ✓, ✗, or ? for a tie that is within the margin but not shown."""
    point = compared.agreement.points.get(arm.arm) if compared.agreement else None
    if not point:
        return ""
    open_yet = point.agrees and not point.shown and compared.several_seeds
    return f"{'?' if open_yet else '✓' if point.agrees else '✗'} {'sign' if point.large else 'tie'}"


def _format_printed(arm: ArmResult, name: str, digits: int) -> str:
    value = arm.paper.get(name)
    return "" if value is None else format_fixed(value, digits)
