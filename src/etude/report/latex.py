"""The table for a paper: rules of booktabs, one row group a rule, scores under the name of their metric.

The file is read with `\\input`. Where the table is wider than the text it is made smaller.
"""

import re
from collections.abc import Sequence
from itertools import groupby

from etude.report.rows import STAR, Column, Row, Rows

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
_SYMBOL = re.compile(r"(\w)(?:_(\w+))?")  # h, d_model, ε_ls: one letter, perhaps with an index


def latex(rows: Rows) -> str:
    """A `table*` with caption, label and notes."""
    grouped = any(_letter(row) for row in rows.rows)
    kinds = ["l" if column.words else "r" for column in rows.columns]
    title = re.sub(r"^Table \d+: ", "", rows.title)  # the paper it goes into counts for itself
    lines = [
        *(f"% {note}" for note in rows.left_out),
        r"\begin{table*}",
        r"\centering",
        rf"\caption{{{escaped(title[:1].upper() + title[1:])}}}",
        rf"\label{{tab:{rows.name}}}",
        r"\medskip",
        r"\small\setlength{\tabcolsep}{4pt}",
        r"\sbox0{%",
        rf"\begin{{tabular}}{{@{{}}{''.join(['l'] * grouped + kinds)}@{{}}}}",
        r"\toprule",
        *_header([Column("", words=True)] * grouped + rows.columns),
        r"\midrule",
        *_body(rows.rows, grouped),
        r"\bottomrule",
        r"\end{tabular}}%",
        r"\ifdim\wd0>\textwidth\resizebox{\textwidth}{!}{\usebox0}\else\usebox0\fi",
        r"\par\medskip",
        r"\begin{minipage}{\textwidth}\footnotesize\raggedright",
        *(rf"{escaped(note)}\par" for note in rows.notes),
        r"\end{minipage}",
        r"\end{table*}",
    ]
    return _HEAD + "\n".join(lines) + "\n"


def escaped(text: str) -> str:
    """Text that prints as it is: 50 % -> 50 \\%."""
    return "".join(_SPECIAL.get(char, char) for char in text)


def _header(columns: Sequence[Column]) -> list[str]:
    """Whose score it is in a second line, below the metric and a rule."""
    above, below, rules, place = [], [], [], 1
    for header, group in groupby(columns, key=lambda column: column.header):
        under = list(group)
        if under[0].whose:
            above.append(rf"\multicolumn{{{len(under)}}}{{c}}{{{escaped(header)}}}")
            rules.append(rf"\cmidrule(lr){{{place}-{place + len(under) - 1}}}")
        else:
            above.append("")
        below += [escaped(column.whose) or _symbol(header) for column in under]
        place += len(under)
    return [_line(above), "".join(rules), _line(below)]


def _body(rows: Sequence[Row], grouped: bool) -> list[str]:
    """As in the paper, (A) stands before the first of A1, A2, ..."""
    lines = []
    for number, (_, group) in enumerate(groupby(rows, key=lambda row: row.group)):
        lines += [r"\midrule"] if number else []
        for place, row in enumerate(group):
            label = [_letter(row) if place == 0 else ""] if grouped else []
            lines.append(_line([*label, *(_cell(cell) for cell in row.cells)]))
    return lines


def _letter(row: Row) -> str:
    return f"({row.group})" if len(row.group) == 1 else ""


def _cell(cell: str) -> str:
    """A star is raised, and what has one is bold."""
    if cell.endswith(STAR):
        return rf"\textbf{{{escaped(cell.removesuffix(STAR))}}}\rlap{{$^*$}}"
    return escaped(cell)


def _symbol(header: str) -> str:
    """A symbol as mathematics, a word as a word."""
    match = _SYMBOL.fullmatch(header)
    if not match:
        return escaped(header)
    letter = escaped(match[1]).strip("$")
    return f"${letter}_{{\\mathrm{{{escaped(match[2])}}}}}$" if match[2] else f"${letter}$"


def _line(cells: Sequence[str]) -> str:
    return " & ".join(cells) + r" \\"
