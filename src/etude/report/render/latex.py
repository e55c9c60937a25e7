"""The table for a paper: rules of booktabs, none but between groups of arms, scores under the name of their metric.

The file is read with `\\input`. It is as wide as the page, or as one of two columns: what an arm is then shares one
column of the table, and each metric but the first stands below. What is wider all the same is made smaller.
"""

import re
from collections.abc import Sequence
from itertools import groupby
from typing import Literal

from etude.report.render.rows import STAR, Column, Row, Rows
from etude.report.render.terminal import WHAT, narrow, split_by_metric
from etude.report.significance import ALPHA

Notes = Literal["full", "short", "none"]

_HEAD = """\
% Written by étude; it is to be read with \\input and needs, in the preamble:
%   \\usepackage{booktabs,graphicx}
"""
_GREEK = ("alpha", "beta", "gamma", "delta", "epsilon", "eta", "lambda", "rho", "sigma", "tau", "Delta")
_SPECIAL = {
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "|": r"\textbar{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    **{char: f"\\{char}" for char in "&%$#_{}"},
    "±": r"$\pm$",
    "×": r"$\times$",
    "−": "$-$",
    "–": "--",
    "✓": r"$\surd$",
    "✗": r"$\times$",
    "§": r"$\S$",
    "†": r"$\dagger$",
    "‡": r"$\ddagger$",
    "¶": r"$\P$",
    **{char: f"$^{{{digit}}}$" for digit, char in enumerate("⁰¹²³⁴⁵⁶⁷⁸⁹")},
    **{char: f"$\\{name}$" for char, name in zip("αβγδεηλρστΔ", _GREEK, strict=True)},
}
_MARKS = tuple("⁰¹²³⁴⁵⁶⁷⁸⁹§†‡¶")  # with which a note begins that explains a mark
_SYMBOL = re.compile(r"(\w)(?:_(\w+))?")  # h, d_model, ε_ls: one letter, perhaps with an index


def latex(rows: Rows, notes: Notes = "full", columns: int = 2) -> str:
    """A table with caption, label and notes.

    Args:
        rows: what it holds.
        notes: which of the notes stand below it: all, those that explain its marks, or none.
        columns: of the paper that it shall span: 2 makes a `table*`, 1 a `table`.
    """
    environment, width = ("table", r"\columnwidth") if columns == 1 else ("table*", r"\textwidth")
    parts = [line for part in _parts(rows, columns) for line in _tabular(part, width)]
    title = re.sub(r"^Table \d+: ", "", rows.title)  # the paper it goes into counts for itself
    lines = [
        *(f"% {note}" for note in rows.left_out),
        rf"\begin{{{environment}}}",
        r"\centering",
        rf"\caption{{{escape_latex(title[:1].upper() + title[1:])}}}",
        rf"\label{{tab:{rows.name}}}",
        r"\medskip",
        r"\small\setlength{\tabcolsep}{4pt}",
        *parts,
        *_below(_chosen(rows, notes), width),
        rf"\end{{{environment}}}",
    ]
    return _HEAD + "\n".join(lines) + "\n"


def _parts(rows: Rows, columns: int) -> list[Rows]:
    """The tables that stand below each other."""
    if columns > 1:
        return [rows]
    return split_by_metric(narrow(rows))


def _tabular(rows: Rows, width: str) -> list[str]:
    grouped = any(_letter(row) for row in rows.rows)
    kinds = [_kind(column) for column in rows.columns]
    return [
        r"\sbox0{%",
        rf"\begin{{tabular}}{{@{{}}{''.join(['l'] * grouped + kinds)}@{{}}}}",
        r"\toprule",
        *_header([Column("", words=True)] * grouped + rows.columns),
        r"\midrule",
        *_body(rows, grouped),
        r"\bottomrule",
        r"\end{tabular}}%",
        rf"\ifdim\wd0>{width}\resizebox{{{width}}}{{!}}{{\usebox0}}\else\usebox0\fi",
        r"\par\medskip",
    ]


def _kind(column: Column) -> str:
    """Words to the left, numbers to the right; what an arm is, all of it in one column, on several lines."""
    return "p{2.6cm}" if column.header == WHAT else "l" if column.words else "r"


def _chosen(rows: Rows, notes: Notes) -> list[str]:
    """The notes that were asked for. Short ones say what the marks and signs of the table mean."""
    if notes != "short":
        return rows.notes if notes == "full" else []
    cells = [cell for row in rows.rows for cell in row.cells]
    told = [note for note in rows.notes if note[:1] in _MARKS]
    told += ["±: half the 95 % interval over seeds."] if any("±" in cell for cell in cells) else []
    starred = any(cell.endswith(STAR) for cell in cells)
    return [*told, *([f"{STAR} p < {ALPHA} after Holm's correction for all arms."] if starred else [])]


def _below(notes: Sequence[str], width: str) -> list[str]:
    if not notes:
        return []
    begin, end = rf"\begin{{minipage}}{{{width}}}\footnotesize\raggedright", r"\end{minipage}"
    return [begin, *(rf"{escape_latex(note)}\par" for note in notes), end]


def escape_latex(text: str) -> str:
    """Text that prints as it is: 50 % -> 50 \\%."""
    return "".join(_SPECIAL.get(char, char) for char in text)


def _header(columns: Sequence[Column]) -> list[str]:
    """Whose score it is in a second line, below the metric and a rule."""
    above, below, rules, place = [], [], [], 1
    for header, group in groupby(columns, key=lambda column: column.header):
        under = list(group)
        if named := any(column.whose for column in under):
            above.append(rf"\multicolumn{{{len(under)}}}{{c}}{{{escape_latex(header)}}}")
            rules.append(rf"\cmidrule(lr){{{place}-{place + len(under) - 1}}}")
        else:
            above.append("")
        below += [escape_latex(column.whose) if named else _symbol(header) for column in under]
        place += len(under)
    return [_line(above), "".join(rules), _line(below)] if rules else [_line(below)]


def _body(rows: Rows, grouped: bool) -> list[str]:
    """As in the paper, (A) stands before the first of A1, A2, ..."""
    lines: list[str] = []
    groups = [list(group) for _, group in groupby(rows.rows, key=lambda row: row.group)]
    for before, group in zip([[], *groups], groups, strict=False):
        lines += [r"\midrule"] if before and (_is_group(before) or _is_group(group)) else []
        for place, row in enumerate(group):
            label = [_letter(row) if place == 0 else ""] if grouped else []
            lines.append(_line([*label, *(_cell(*both) for both in zip(row.cells, rows.columns, strict=True))]))
    return lines


def _is_group(rows: Sequence[Row]) -> bool:
    """Whether rules part these rows from others; arms that stand alone need none between them."""
    return len(rows) > 1 or bool(_letter(rows[0]))


def _letter(row: Row) -> str:
    return f"({row.group})" if len(row.group) == 1 else ""


def _cell(cell: str, column: Column) -> str:
    """A star is raised, and what has one is bold; what an arm is is not spread over the line."""
    if column.header == WHAT:
        return rf"\raggedright {escape_latex(cell)}"
    if cell.endswith(STAR):
        return rf"\textbf{{{escape_latex(cell.removesuffix(STAR))}}}\rlap{{$^*$}}"
    return escape_latex(cell)


def _symbol(header: str) -> str:
    """A symbol as mathematics, a word as a word."""
    match = _SYMBOL.fullmatch(header)
    if not match:
        return escape_latex(header)
    letter = escape_latex(match[1]).strip("$")
    return f"${letter}_{{\\mathrm{{{escape_latex(match[2])}}}}}$" if match[2] else f"${letter}$"


def _line(cells: Sequence[str]) -> str:
    return " & ".join(cells) + r" \\"
