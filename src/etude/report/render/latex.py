"""Render a report's table in LaTeX, with booktabs rules between groups of arms and scores grouped by metric.

The file is for `\\input`. The table is as wide as the page or as one of its two columns. In one column, the changed
config values of an arm share one table column, and there is a table below the other for each metric. A table that is
still too wide is scaled down.
"""

import re
from collections.abc import Sequence
from itertools import groupby
from typing import Literal

from etude.report.render.rows import Cell, Column, Row, Rows
from etude.report.render.terminal import WHAT, narrow, split_by_metric

Notes = Literal["full", "short", "none"]

_HEAD = """\
% Written by étude; it is to be read with \\input and needs, in the preamble:
%   \\usepackage{booktabs,graphicx}
% Letters that pdflatex does not have, such as Chinese ones, need lualatex or xelatex, and a font that has them.
"""
_PAGE = 60  # rows; what is longer does not fit, and LaTeX breaks no float
_GREEK = (
    "alpha beta gamma delta epsilon zeta eta theta iota kappa lambda mu nu xi pi rho sigma tau upsilon phi chi psi "
    "omega Gamma Delta Theta Lambda Xi Pi Sigma Upsilon Phi Psi Omega"
)
_SIGNS = "le ge approx neq rightarrow leftarrow infty surd cdot"
_SPECIAL = {
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "|": r"\textbar{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "[": "{[}",  # after the end of a row, or a rule, it would open an option
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
    **{char: f"$\\{name}$" for char, name in zip("αβγδεζηθικλμνξπρστυφχψωΓΔΘΛΞΠΣΥΦΨΩ", _GREEK.split(), strict=True)},
    **{char: f"$\\{name}$" for char, name in zip("≤≥≈≠→←∞√·", _SIGNS.split(), strict=True)},
}


def latex(rows: Rows, notes: Notes = "full", columns: int = 2) -> str:
    """Render a table with caption, label and notes.

    Args:
        rows: the table.
        notes: "full" for all notes, "short" for those that explain marks and signs, or "none".
        columns: how many columns of the page it spans: 2 for a `table*`, 1 for a `table`.
    """
    environment, width = ("table", r"\columnwidth") if columns == 1 else ("table*", r"\textwidth")
    parts = [rows] if columns > 1 else split_by_metric(narrow(rows))  # one below the other
    label = re.sub(r"[^\w:.+-]", "-", rows.name)  # of 50%_runs, % would begin a comment
    title = re.sub(r"^Table \d+: ", "", rows.title)  # LaTeX numbers the tables of the paper that includes it
    below = [rf"{escape_latex(note)}\par" for note in _choose(rows, notes)]
    if below:
        below = [rf"\begin{{minipage}}{{{width}}}\footnotesize\raggedright", *below, r"\end{minipage}"]
    too_long = f"Its {len(rows.rows)} rows do not fit one page, and LaTeX breaks no float: divide the tabular."
    lines = [
        *(f"% {note}" for note in [*rows.left_out, *[too_long] * (len(rows.rows) > _PAGE)]),
        rf"\begin{{{environment}}}",
        r"\centering",
        rf"\caption{{{escape_latex(title[:1].upper() + title[1:])}}}",
        rf"\label{{tab:{label}}}",
        r"\medskip",
        r"\small\setlength{\tabcolsep}{4pt}",
        *(line for part in parts for line in _tabular(part, width)),
        *below,
        rf"\end{{{environment}}}",
    ]
    return _HEAD + "\n".join(lines) + "\n"


def _tabular(rows: Rows, width: str) -> list[str]:
    """Render a `tabular`: words left-aligned, numbers right-aligned, the column `WHAT` wrapped."""
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
    """Choose the notes to show. Short ones explain the marks and signs of the table."""
    if notes != "short":
        return rows.sentences if notes == "full" else []
    return [*(str(note) for note in rows.notes if note.mark), *rows.legend]


def escape_latex(text: str) -> str:
    """Escape text for LaTeX: 50 % -> 50 \\%."""
    return "".join(_SPECIAL.get(char, char) for char in text)


def _header(columns: Sequence[Column]) -> list[str]:
    """Render the header: metrics and rules above, and below each metric whose score it is."""
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
    """Render the rows. As in the paper, (A) precedes the first of A1, A2, ...; rules separate groups of arms."""
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
    return f"({row.group})" if re.fullmatch("[A-Za-z]", row.group) else ""


def _cell(cell: Cell, column: Column) -> str:
    """Render a cell: bold with a raised star if it has one; ragged right in the column `WHAT`."""
    if column.header == WHAT:
        return rf"\raggedright {escape_latex(cell.text)}"
    return rf"\textbf{{{escape_latex(cell.plain)}}}\rlap{{$^*$}}" if cell.star else escape_latex(cell.plain)


def _symbol(header: str) -> str:
    """Render a header in math mode if it is a symbol, one letter with or without an index: h, d_model, ε_ls."""
    match = re.fullmatch(r"(\w)(?:_(\w+))?", header)
    if not match:
        return escape_latex(header)
    letter, index = (re.sub(r"\$(.+?)\$", r"{\1}", escape_latex(part or "")) for part in match.groups())
    return f"${letter}_{{\\mathrm{{{index}}}}}$" if index else f"${letter}$"


def _line(cells: Sequence[str]) -> str:
    return " & ".join(cells) + r" \\"
