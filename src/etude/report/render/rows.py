"""What a report says: rows of cells, and the notes below them. How it looks is decided in `table.py` and `latex.py`."""

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from etude.report.agreement import Point
from etude.report.comparison import ArmResult, Compared
from etude.report.footnotes import marks, notes
from etude.report.statistics import Comparison, Mean
from etude.report.wording import fixed, millions, plain
from etude.studies.study import value_at

_DIGITS = {"PPL": 2, "BLEU": 1}
NATS = "Δ ln PPL"
_NATS_DIGITS = 3
_PARAMETERS = "params ×10⁶"
DELTA = "Δ"
STAR = "*"


@dataclass(frozen=True)
class Column:
    """A printed column."""

    header: str
    whose: str = ""  # "ours" beside "paper", "tuned" at its own best, or "Δ", an arm's less the baseline's
    about_arm: bool = False  # where it says what the arm is
    words: bool = False  # where it holds words rather than numbers
    starred: bool = False  # where a number may have a star


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
    study, marked = compared.study, marks(compared)
    table = Rows(study.name, study.title, _columns(compared), notes=notes(compared), left_out=compared.left_out)
    for arm in compared.arms:
        cells = [arm.arm + marked[arm.arm], *_description(arm, compared)]
        cells += [_mean(arm.ppl, _DIGITS["PPL"])]
        cells += [_printed(arm.paper, "ppl", _DIGITS["PPL"])] if study.paper.arms else []
        cells += _nats(arm, compared)
        cells += [_mean(arm.bleu, _DIGITS["BLEU"])]
        if compared.several_seeds:
            bleu, star = (arm.against.bleu, arm.against.bleu_star) if arm.against else (None, False)
            cells += [_difference(bleu, star, _DIGITS["BLEU"])]
        cells += [_printed(arm.paper, "bleu", _DIGITS["BLEU"])] if study.paper.arms else []
        cells += ["–" if arm.parameters is None else millions(arm.parameters)]
        cells += [_printed(arm.paper, "params_M", 0)] if study.paper.arms else []
        cells += [_seeds(arm)] if compared.several_seeds else []
        if not arm.runs:
            cells[1 + len(study.columns)] = _absent(arm)
        table.rows.append(Row(_group(arm.arm), cells, bool(arm.runs)))
    return table


def _columns(compared: Compared) -> list[Column]:
    study = compared.study
    configs = [run.config for arm in compared.arms for run in arm.runs]
    columns = [Column("arm", words=True)]
    for header, key in study.columns.items():
        words = any(isinstance(value_at(config, key), str) for config in configs)
        columns.append(Column(header, about_arm=True, words=words))
    paper = bool(study.paper.arms)
    ours = "ours" if paper else ""
    columns += [Column("PPL", ours), *([Column("PPL", "paper")] if paper else [])]
    columns += [Column(NATS, ours, starred=True), *([Column(NATS, "paper")] if paper else [])]
    columns += [Column(NATS, "tuned", starred=True)] if compared.tuned else []
    columns += [Column("agrees", words=True)] if compared.agreement else []
    columns += [Column("BLEU", ours)]
    columns += [Column("BLEU", DELTA, starred=True)] if compared.several_seeds else []
    columns += [Column("BLEU", "paper")] if paper else []
    columns += [Column(_PARAMETERS, ours), *([Column(_PARAMETERS, "paper")] if paper else [])]
    return columns + ([Column("seeds")] if compared.several_seeds else [])


def _group(arm: str) -> str:
    """A of A1, A2, ...; position of position-rope, position-t5, ..."""
    match = re.fullmatch(r"([A-Za-z]+)\d+|([A-Za-z]+)-.+", arm)
    return match[1] or match[2] if match else arm


def _description(arm: ArmResult, compared: Compared) -> list[str]:
    """What the arm is, blank where it is as the baseline."""
    if arm is compared.baseline and arm.runs:
        return [plain(value_at(arm.runs[0].config, key)) for key in compared.study.columns.values()]
    return [plain(arm.differs[header]) if header in arm.differs else "" for header in compared.study.columns]


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
    half = f" ± {fixed(mean.interval.high - mean.value, digits)}" if mean.interval else ""
    return fixed(mean.value, digits) + half


def _difference(found: Comparison | None, star: bool, digits: int) -> str:
    """With its sign, and a star where it is more than luck."""
    if found is None:
        return ""
    return fixed(found.difference, digits, sign=True) + (STAR if star else "")


def _nats(arm: ArmResult, compared: Compared) -> list[str]:
    """What the arm's perplexity costs in nats a token, ours and the paper's, and whether the two agree."""
    found, star = (arm.against.ppl, arm.against.ppl_star) if arm.against else (None, False)
    cells = [_difference(found, star, _NATS_DIGITS)]
    if compared.study.paper.arms:
        reference = compared.study.paper.arms.get(compared.study.reference(arm.arm), {})
        theirs, base = arm.paper.get("ppl"), reference.get("ppl")
        known = theirs and base and arm is not compared.baseline
        cells += [fixed(math.log(theirs / base), _NATS_DIGITS, sign=True) if known and theirs and base else ""]
    if compared.tuned:
        tuned = next(one.against for one in compared.tuned.compared.arms if one.arm == arm.arm)
        cells += [_difference(tuned.ppl, tuned.ppl_star, _NATS_DIGITS) if tuned else ""]
    if compared.agreement:
        point = compared.agreement.points.get(arm.arm)
        cells += [_agrees(point, compared.several_seeds) if point else ""]
    return cells


def _agrees(point: Point, several_seeds: bool) -> str:
    """Whether a sign or a tie is the paper's; a tie that no test shows, where one could, is open."""
    open_yet = point.agrees and not point.shown and several_seeds
    return f"{'?' if open_yet else '✓' if point.agrees else '✗'} {'sign' if point.large else 'tie'}"


def _printed(paper: Mapping[str, float | None], name: str, digits: int) -> str:
    value = paper.get(name)
    return "" if value is None else fixed(value, digits)
