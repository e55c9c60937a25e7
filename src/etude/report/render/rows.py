"""The content of a report: rows of cells, and notes. `terminal.py`, `latex.py` and `html/table.py` render it."""

import math
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from etude.report.comparison import ALPHA, ArmResult, Compared
from etude.report.notes import Note, marks, notes
from etude.report.wording import format_fixed, format_value
from etude.store.run_state import State
from etude.study.metrics import Metric
from etude.study.study import value_at

_PARAMETERS = "params ×10⁶"
DELTA = "Δ"
STAR = "*"


@dataclass(frozen=True)
class Cell:
    """What a cell says: a number, or words."""

    value: Any = None  # a score, a difference, a count, a config value or words; None: the cell is empty
    digits: int | None = None  # decimal places of a score or difference; None: as configs are written
    half: float | None = None  # half of its interval
    sign: bool = False  # whether a plus is shown
    star: bool = False
    marks: str = ""  # what refers to notes, or more words behind a number
    blank: bool = False  # not shown, because it is the baseline's
    order: float | None = None  # by what a page sorts words in a column of numbers, such as "40 / 100"

    @property
    def text(self) -> str:
        """The cell as it is read, with its star."""
        return self.plain + STAR * self.star

    @property
    def plain(self) -> str:
        """The cell without its star: "5.29 ± 0.10"."""
        if self.blank or self.value is None:
            return self.marks
        if self.digits is None:
            return format_value(self.value) + self.marks
        least = 10.0**-self.digits
        around = "" if self.half is None else f" ± {format_fixed(self.half, self.digits)}"
        if self.half is not None and self.half < least / 2:
            around = f" ± <{format_fixed(least, self.digits)}"
        return format_fixed(self.value, self.digits, self.sign) + around + self.marks


_NONE = Cell("–")


@dataclass(frozen=True)
class Column:
    """A printed column."""

    header: str
    whose: str = ""  # "ours", "paper", "tuned" (each arm at its own best value), or "Δ" (arm minus baseline)
    about_arm: bool = False  # a config value of the arm
    words: bool = False  # words rather than numbers
    starred: bool = False  # its numbers may have a star
    breaks: bool = False  # a table that is too wide is broken before this column


@dataclass(frozen=True)
class Row:
    """The row of one arm: its cells in the order of the columns."""

    group: str  # "A" for A1, A2, ...; rules separate the groups
    cells: list[Cell]
    run: bool  # whether the arm has a result
    link: str = ""  # the page that its name leads to

    @property
    def texts(self) -> list[str]:
        """Its cells as they are read."""
        return [cell.text for cell in self.cells]


@dataclass
class Rows:
    """The content of a table, before rendering."""

    name: str  # of the study
    title: str
    columns: list[Column]
    rows: list[Row] = field(default_factory=list)  # one per arm
    notes: list[Note] = field(default_factory=list)  # on the numbers, the marks, and runs that diverged
    left_out: list[str] = field(default_factory=list)  # which runs were not selected, and why
    correction: str = ""  # of the p behind a star
    interval: str = "95 % interval over seeds"  # of which a ± is half

    @property
    def sentences(self) -> list[str]:
        """The notes as they are read."""
        return [*map(str, self.notes)]

    @property
    def legend(self) -> list[str]:
        """What the signs in its cells mean, in a few words."""
        cells = [cell for row in self.rows for cell in row.cells]
        half = [f"±: half the {self.interval}."] * any(cell.half is not None for cell in cells)
        return half + [f"{STAR} p < {ALPHA} after {self.correction}."] * any(cell.star for cell in cells)

    @property
    def paragraphs(self) -> list[Note]:
        """All that stands below the table."""
        return [*self.notes, *map(Note, self.left_out)]


def make_rows(compared: Compared) -> Rows:
    """Make the study's table, in the layout of the paper, from the comparison of its arms."""
    study = compared.study
    columns, cells = zip(*_columns(compared), strict=True)
    rows = []
    for arm in compared.arms:
        row = [cell(arm) for cell in cells]
        if not arm.runs:  # its state replaces its first score
            row[1 + len(study.columns)] = Cell(state_of(arm))
        match = re.fullmatch(r"([A-Za-z]+)\d+|([A-Za-z]+)-.+|([^ =]+)=.*", arm.arm)  # A1; position-rope; model.heads=2
        group = next(filter(None, match.groups())) if match else arm.arm
        rows.append(Row(group, row, bool(arm.runs)))
    return Rows(study.name, study.title, list(columns), rows, notes(compared), compared.left_out, compared.correction)


def state_of(arm: ArmResult) -> str:
    """Return the state of an arm without a score."""
    failed = all(run.state is State.FAILED for run in arm.unfinished)
    return "diverged" if arm.diverged else "not run" if not arm.unfinished else "failed" if failed else "begun"


def _columns(compared: Compared) -> Iterator[tuple[Column, Callable[[ArmResult], Cell]]]:
    """Yield the columns of a study's table, each with the function that makes an arm's cell."""
    study, marked = compared.study, marks(compared)
    yield Column("arm", words=True), lambda arm: Cell(arm.arm, marks=marked[arm.arm])
    configs = [run.config for arm in compared.arms for run in arm.runs]
    for header, key in study.columns.items():
        words = any(isinstance(value_at(config, key), str | bool | list) for config in configs)
        yield Column(header, about_arm=True, words=words), lambda arm, key=key: _config_value(arm, key, compared)  # type: ignore[misc]
    paper, ours = bool(study.paper.arms), "ours" if study.paper.arms else ""
    for place, metric in enumerate(study.metrics.values()):
        yield from _metric_columns(metric, compared, ours, breaks=place > 0)
    if any(arm.costs["parameters"] for arm in compared.arms):
        yield Column(_PARAMETERS, ours), _parameters
    if paper:
        yield Column(_PARAMETERS, "paper"), lambda arm: Cell(arm.paper.get("params_M"), 0)
    if compared.several_seeds:
        yield Column("seeds"), _seeds


def _metric_columns(
    metric: Metric, compared: Compared, ours: str, breaks: bool
) -> Iterator[tuple[Column, Callable[[ArmResult], Cell]]]:
    """Yield a metric's columns: mean and difference, ours and the paper's.

    For a logarithmic metric the difference is of logarithms, and the paper's is shown too.
    """
    paper, header = metric.name in compared.study.printed, f"{DELTA} {metric.compared_label}"
    yield Column(metric.label, ours, breaks=breaks), lambda arm: _mean(arm, metric)
    if compared.several_seeds and not metric.is_log:
        yield Column(metric.label, DELTA, starred=True), lambda arm: _difference(arm, metric)
    if paper:
        yield Column(metric.label, "paper"), lambda arm: Cell(arm.paper.get(metric.name), metric.digits)
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


def _config_value(arm: ArmResult, key: str, compared: Compared) -> Cell:
    """Return an arm's config value at `key`, blank if it equals the baseline's."""
    if not arm.runs:
        return Cell()
    value, base = value_at(arm.runs[0].config, key), compared.baseline
    same = arm is not base and bool(base.runs) and value == value_at(base.runs[0].config, key)
    return Cell("–" if value is None else value, blank=same)


def _parameters(arm: ArmResult) -> Cell:
    """Return the parameters in millions, with three figures."""
    if (count := arm.costs["parameters"]) is None:
        return _NONE
    millions = count / 1e6
    return Cell(millions, max(0, 2 - math.floor(math.log10(millions))) if 0 < millions < 100 else 0)


def _seeds(arm: ArmResult) -> Cell:
    """Return the number of seeds in the means; if some diverged, also the number of finished runs: "2 of 3"."""
    finished = len(arm.runs) + len(arm.diverged)
    return Cell(len(arm.runs), marks=f" of {finished}" if arm.diverged else "") if finished else Cell()


def _mean(arm: ArmResult, metric: Metric) -> Cell:
    """Return the mean of an arm, with half of its interval if it has one."""
    mean = arm.means.get(metric.name)
    if mean is None:
        return _NONE
    return Cell(mean.value, metric.digits, mean.interval.high - mean.value if mean.interval else None)


def _difference(arm: ArmResult, metric: Metric) -> Cell:
    """Return the difference from the reference arm, with a star if it is significant."""
    found = arm.against.differences.get(metric.name) if arm.against else None
    return Cell(found.test.difference, metric.compared_digits, sign=True, star=found.star) if found else Cell()


def _papers_difference(arm: ArmResult, metric: Metric, compared: Compared) -> Cell:
    reference = compared.study.paper.arms.get(compared.study.reference(arm.arm), {})
    theirs, base = arm.paper.get(metric.name), reference.get(metric.name)
    if not theirs or not base or arm is compared.baseline:
        return Cell()
    return Cell(math.log(theirs / base), metric.compared_digits, sign=True)


def _agrees(arm: ArmResult, compared: Compared) -> Cell:
    """Say whether an arm agrees with the paper: ✓, ✗, or ? for a tie that is within the margin but not shown."""
    point = compared.agreement.points.get(arm.arm) if compared.agreement else None
    if not point:
        return Cell()
    open_yet = point.agrees and not point.shown and compared.several_seeds
    return Cell(f"{'?' if open_yet else '✓' if point.agrees else '✗'} {'sign' if point.large else 'tie'}")
