"""The table for a paper: rules of booktabs, none but between groups of arms, scores under the name of their metric.

The file is read with `\\input`. It is as wide as the page, or as one of two columns: what an arm is then shares one
column of the table, and each metric but the first stands below. What is wider all the same is made smaller.
"""

import re
from collections.abc import Sequence
from itertools import groupby
from typing import Literal

from etude.report.comparison import ALPHA
from etude.report.render.rows import STAR, Column, Row, Rows
from etude.report.render.terminal import WHAT, narrow, split_by_metric

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


def latex(rows: Rows, notes: Notes = "full", columns: int = 2) -> str:
    """A table with caption, label and notes: all of them, those that explain its marks, or none.

    `columns` are those of the paper that it shall span: 2 makes a `table*`, 1 a `table`.
    """
    environment, width = ("table", r"\columnwidth") if columns == 1 else ("table*", r"\textwidth")
    parts = [rows] if columns > 1 else split_by_metric(narrow(rows))  # which stand below each other
    title = re.sub(r"^Table \d+: ", "", rows.title)  # the paper it goes into counts for itself
    below = [rf"{escape_latex(note)}\par" for note in _choose(rows, notes)]
    if below:
        below = [rf"\begin{{minipage}}{{{width}}}\footnotesize\raggedright", *below, r"\end{minipage}"]
    lines = [
        *(f"% {note}" for note in rows.left_out),
        rf"\begin{{{environment}}}",
        r"\centering",
        rf"\caption{{{escape_latex(title[:1].upper() + title[1:])}}}",
        rf"\label{{tab:{rows.name}}}",
        r"\medskip",
        r"\small\setlength{\tabcolsep}{4pt}",
        *(line for part in parts for line in _tabular(part, width)),
        *below,
        rf"\end{{{environment}}}",
    ]
    return _HEAD + "\n".join(lines) + "\n"


def _tabular(rows: Rows, width: str) -> list[str]:
    """Words to the left, numbers to the right; what an arm is, all of it in one column, on several lines."""
    grouped = any(_letter(row) for row in rows.rows)
    kinds = ["p{2.6cm}" if column.header == WHAT else "l" if column.words else "r" for column in rows.columns]
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


def _choose(rows: Rows, notes: Notes) -> list[str]:
    """The notes that were asked for. Short ones say what the marks and signs of the table mean."""
    if notes != "short":
        return rows.notes if notes == "full" else []
    cells = [cell for row in rows.rows for cell in row.cells]
    footnotes = [note for note in rows.notes if note[:1] in _MARKS]
    footnotes += ["±: half the 95 % interval over seeds."] * any("±" in cell for cell in cells)
    footnotes += [f"{STAR} p < {ALPHA} after Holm's correction for all arms."] * any(c.endswith(STAR) for c in cells)
    return footnotes


def escape_latex(text: str) -> str:
    """Text that prints as it is: 50 % -> 50 \\%."""
    return "".join(_SPECIAL.get(char, char) for char in text)


def _header(columns: Sequence[Column]) -> list[str]:
    """Whose score it is in a second line, below the metric and a rule."""
    above, below, rules, place = [], [], "", 1
    for header, group in groupby(columns, key=lambda column: column.header):
        under = list(group)
        if any(column.whose for column in under):
            above.append(rf"\multicolumn{{{len(under)}}}{{c}}{{{escape_latex(header)}}}")
            rules += rf"\cmidrule(lr){{{place}-{place + len(under) - 1}}}"
            below += [escape_latex(column.whose) for column in under]
        else:
            above.append("")
            below += [_symbol(header)] * len(under)
        place += len(under)
    return [_line(above), rules, _line(below)] if rules else [_line(below)]


def _body(rows: Rows, grouped: bool) -> list[str]:
    """As in the paper, (A) stands before the first of A1, A2, ...; rules part groups, not arms that stand alone."""
    lines: list[str] = []
    before: list[Row] = []
    for _, rows_of_group in groupby(rows.rows, key=lambda row: row.group):
        group = list(rows_of_group)
        lines += [r"\midrule"] * (
            bool(before) and any(len(one) > 1 or _letter(one[0]) != "" for one in (before, group))
        )
        for place, row in enumerate(group):
            label = [_letter(row) if place == 0 else ""] * grouped
            lines.append(_line([*label, *(_cell(*both) for both in zip(row.cells, rows.columns, strict=True))]))
        before = group
    return lines


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
    """A symbol as mathematics, a word as a word: h, d_model and ε_ls are one letter, perhaps with an index."""
    match = re.fullmatch(r"(\w)(?:_(\w+))?", header)
    if not match:
        return escape_latex(header)
    letter = escape_latex(match[1]).strip("$")
    return f"${letter}_{{\\mathrm{{{escape_latex(match[2])}}}}}$" if match[2] else f"${letter}$"


def _line(cells: Sequence[str]) -> str:
    return " & ".join(cells) + r" \\"
