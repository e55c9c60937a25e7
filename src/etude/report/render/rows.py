"""What a report says: rows of cells, and the notes below them. How it looks is decided in `table.py` and `latex.py`."""

import math
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from etude.report.agreement import Point
from etude.report.comparison import ArmResult, Compared
from etude.report.footnotes import marks, notes
from etude.report.significance import Difference
from etude.report.statistics import Mean
from etude.report.wording import format_fixed, format_millions, format_value
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
    whose: str = ""  # "ours" beside "paper", "tuned" at its own best, or "Δ", an arm's less the baseline's
    about_arm: bool = False  # where it says what the arm is
    words: bool = False  # where it holds words rather than numbers
    starred: bool = False  # where a number may have a star
    breaks: bool = False  # before which a table that is too wide is broken


@dataclass(frozen=True)
class Row:
    """One arm: its cells in the order of the columns."""

    group: str  # "A" for A1, A2, ...; rules separate the groups
    cells: list[str]
    run: bool  # whether there is a result


@dataclass
class Rows:
    """A whole table, not yet drawn.

    Attributes:
        name: of the study.
        title: above the table.
        columns: what each cell of a row is.
        rows: one an arm.
        notes: what the numbers are, what the marks mean, and what diverged.
        left_out: which runs were not selected, and why.
    """

    name: str
    title: str
    columns: list[Column]
    rows: list[Row] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    left_out: list[str] = field(default_factory=list)


def make_rows(compared: Compared) -> Rows:
    """The study's table as the paper prints it, filled with what was found."""
    study, columns = compared.study, [*_columns(compared)]
    table = Rows(study.name, study.title, [column for column, _ in columns], notes=notes(compared))
    table.left_out = compared.left_out
    first_score = 1 + len(study.columns)
    for arm in compared.arms:
        cells = [cell(arm) for _, cell in columns]
        if not arm.runs:
            cells[first_score] = _absent(arm)
        table.rows.append(Row(_group(arm.arm), cells, bool(arm.runs)))
    return table


def _columns(compared: Compared) -> Iterator[tuple[Column, Cell]]:
    """The columns of a study's table, each with what an arm's cell in it says."""
    study, marked = compared.study, marks(compared)
    yield Column("arm", words=True), lambda arm: arm.arm + marked[arm.arm]
    configs = [run.config for arm in compared.arms for run in arm.runs]
    for header, key in study.columns.items():
        words = any(isinstance(value_at(config, key), str) for config in configs)
        yield Column(header, about_arm=True, words=words), _describe(header, key, compared)
    paper, ours = bool(study.paper.arms), "ours" if study.paper.arms else ""
    for place, metric in enumerate(study.metrics.values()):
        yield from _metric_columns(metric, compared, ours, breaks=place > 0)
    yield Column(_PARAMETERS, ours), lambda arm: "–" if arm.parameters is None else format_millions(arm.parameters)
    if paper:
        yield Column(_PARAMETERS, "paper"), lambda arm: _printed(arm, "params_M", 0)
    if compared.several_seeds:
        yield Column("seeds"), _seeds


def _metric_columns(metric: Metric, compared: Compared, ours: str, breaks: bool) -> Iterator[tuple[Column, Cell]]:
    """Mean and difference, ours and the paper's; of a logarithmic one the difference of logarithms, with both."""
    name, digits = metric.name, metric.digits
    printed = Column(metric.label, "paper"), lambda arm: _printed(arm, name, digits)
    paper = name in compared.study.printed
    yield Column(metric.label, ours, breaks=breaks), lambda arm: _mean(arm.means.get(name), digits)
    if not metric.is_log:
        if compared.several_seeds:
            yield Column(metric.label, DELTA, starred=True), lambda arm: _difference(arm, metric)
        if paper:
            yield printed
        return
    header = f"{DELTA} {metric.compared_label}"
    if paper:
        yield printed
    yield Column(header, ours, starred=True), lambda arm: _difference(arm, metric)
    if paper:
        yield Column(header, "paper"), lambda arm: _papers_difference(arm, metric, compared)
    if metric == compared.study.lead:
        yield from _lead_columns(header, metric, compared)


def _lead_columns(header: str, metric: Metric, compared: Compared) -> Iterator[tuple[Column, Cell]]:
    """Each arm at its own best, and whether it agrees with the paper."""
    if compared.tuned:
        tuned = {arm.arm: arm for arm in compared.tuned.compared.arms}
        yield Column(header, "tuned", starred=True), lambda arm: _difference(tuned[arm.arm], metric)
    if found := compared.agreement:
        points, several = found.points, compared.several_seeds
        yield (
            Column("agrees", words=True),
            lambda arm: _agrees(points[arm.arm], several) if arm.arm in points else "",
        )


def _group(arm: str) -> str:
    """A of A1, A2, ...; position of position-rope, position-t5, ..."""
    match = re.fullmatch(r"([A-Za-z]+)\d+|([A-Za-z]+)-.+", arm)
    return match[1] or match[2] if match else arm


def _describe(header: str, key: str, compared: Compared) -> Cell:
    """What the arm is, blank where it is as the baseline."""

    def cell(arm: ArmResult) -> str:
        if arm is compared.baseline and arm.runs:
            return format_value(value_at(arm.runs[0].config, key))
        return format_value(arm.differs[header]) if header in arm.differs else ""

    return cell


def _absent(arm: ArmResult) -> str:
    return "diverged" if arm.diverged else "begun" if arm.unfinished else "not run"


def _seeds(arm: ArmResult) -> str:
    """How many the means are made of: where some diverged, of how many."""
    finished = len(arm.runs) + len(arm.diverged)
    return f"{len(arm.runs)} of {finished}" if arm.diverged else str(finished or "")


def _mean(mean: Mean | None, digits: int) -> str:
    """The mean, with half of its interval where it has one."""
    if mean is None:
        return "–"
    half = f" ± {format_fixed(mean.interval.high - mean.value, digits)}" if mean.interval else ""
    return format_fixed(mean.value, digits) + half


def _difference(arm: ArmResult, metric: Metric) -> str:
    """With its sign, and a star where it is more than luck."""
    found: Difference | None = arm.against.differences.get(metric.name) if arm.against else None
    if found is None:
        return ""
    return format_fixed(found.test.difference, metric.compared_digits, sign=True) + (STAR if found.star else "")


def _papers_difference(arm: ArmResult, metric: Metric, compared: Compared) -> str:
    reference = compared.study.paper.arms.get(compared.study.reference(arm.arm), {})
    theirs, base = arm.paper.get(metric.name), reference.get(metric.name)
    if not theirs or not base or arm is compared.baseline:
        return ""
    return format_fixed(math.log(theirs / base), metric.compared_digits, sign=True)


def _agrees(point: Point, several_seeds: bool) -> str:
    """Whether a sign or a tie is the paper's; a tie that no test shows, where one could, is open."""
    open_yet = point.agrees and not point.shown and several_seeds
    return f"{'?' if open_yet else '✓' if point.agrees else '✗'} {'sign' if point.large else 'tie'}"


def _printed(arm: ArmResult, name: str, digits: int) -> str:
    value = arm.paper.get(name)
    return "" if value is None else format_fixed(value, digits)
