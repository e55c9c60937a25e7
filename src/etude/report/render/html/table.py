"""Render the study's table in HTML. It needs no script; with one, its headers sort the rows."""

import re
from html import escape

from etude.report.comparison import Compared
from etude.report.notes import Note
from etude.report.render.rows import Cell, Column, Row, Rows

_SHOWN = 2  # lines below a table
_SYMBOL = re.compile(r"\b(\w)_(\w+)")  # d_model, ε_ls: a letter with an index


def table(rows: Rows) -> str:
    """Render the table, one row per arm in the study's order.

    Each cell has its sort key in `data-value`: its number or word, also where the cell is blank because it equals the
    baseline's; none if there is no value.
    """
    is_told = any(cell.blank for row in rows.rows for cell in row.cells)  # by the row of what others are compared with
    first = next((row for row in rows.rows if row.run and is_told), None)
    body, group = "", ""
    for row in rows.rows:
        body += _row(rows, row, row is first, begins=row.group != group)
        group = row.group
    heads = "".join(map(_head, rows.columns))
    return f'<table id="study"><thead><tr>{heads}</tr></thead>\n<tbody>\n{body}</tbody></table>'


def plain_table(rows: Rows) -> str:
    """Render a table that does not sort."""
    heads = "".join(f'<th scope="col"{_classes(column)}>{_title(column)}</th>' for column in rows.columns)
    body = "".join(
        "<tr>"
        + "".join(
            f"<td{_classes(column)}>{escape(cell.text)}</td>" if place else f'<th scope="row">{escape(cell.text)}</th>'
            for place, (column, cell) in enumerate(zip(rows.columns, row.cells, strict=True))
        )
        + "</tr>\n"
        for row in rows.rows
    )
    return f"<table><thead><tr>{heads}</tr></thead>\n<tbody>\n{body}</tbody></table>"


def notes(rows: Rows) -> str:
    """Render the notes and what was left out, one paragraph each; those behind the first two lines are folded.

    The first line says what the signs of the table mean, if it has some. A command stays below the note that names it.
    """
    legend, paragraphs = " ".join(rows.legend), rows.paragraphs
    if legend:  # what says the same at length is folded
        paragraphs = sorted(paragraphs, key=lambda note: note.text.startswith("±"))
    shown = 1 if legend else _SHOWN
    while any(note.is_command for note in paragraphs[shown : shown + 2]):
        shown += 1
    first = [f"<p>{escape(legend)}</p>"] * bool(legend) + [*map(_note, paragraphs[:shown])]
    if rest := [*map(_note, paragraphs[shown:])]:
        more = f"{len(rest)} more note{'s' * (len(rest) > 1)}"
        first += [f'<details class="rest"><summary>{more}</summary>', *rest, "</details>"]
    return "\n".join(first)


def _note(note: Note) -> str:
    text = escape(str(note))
    return f"<p><code>{text}</code></p>" if note.is_command else f"<p>{text}</p>"


def setting(compared: Compared) -> str:
    """Render the setting that all runs share, and their seeds."""
    seeds = sorted({run.seed for arm in compared.arms for run in (*arm.runs, *arm.diverged)})
    chosen = " ".join(f"{key}={value}" for key, value in compared.setting.items())
    told = [f"<code>{escape(chosen)}</code>"] * bool(chosen)
    return ", ".join([*told, f"seed{'s' * (len(seeds) > 1)} {', '.join(map(str, seeds))}"])


def _row(rows: Rows, row: Row, is_first: bool, begins: bool) -> str:
    pairs = [*zip(rows.columns, row.cells, strict=True)]
    about = ", ".join(f"{column.header}={cell.text}" for column, cell in pairs if column.about_arm and cell.text)
    note = "" if is_first else f'<span class="is">{escape(about)}</span>'  # shown if there is no room for columns
    cells = []
    for index, (column, cell) in enumerate(pairs):
        attributes = _classes(column) + _sort_key(cell, column)
        text = f"<b>{escape(cell.text)}</b>" if cell.star else escape(cell.text)
        text = f'<a href="{escape(row.link)}">{text}</a>' if row.link and not index else text
        cells.append(f"<td{attributes}>{text}</td>" if index else f'<th scope="row"{attributes}>{text}{note}</th>')
    kinds = " ".join(filter(None, ("begins" * begins, "absent" * (not row.run))))
    opening = f'<tr class="{kinds}">' if kinds else "<tr>"
    return f"{opening}{''.join(cells)}</tr>\n"


def _classes(column: Column) -> str:
    kinds = {"words": column.words, "about": column.about_arm, "paper": column.whose == "paper"}
    classes = " ".join(kind for kind, holds in kinds.items() if holds)
    return f' class="{classes}"' if classes else ""


def _sort_key(cell: Cell, column: Column) -> str:
    value = cell.value if cell.order is None else cell.order
    if value is None or not (column.words or isinstance(value, int | float)):
        return ""
    return f' data-value="{escape(str(value))}"'


def _head(column: Column) -> str:
    words = ' data-words="1"' if column.words else ""
    button = f'<button type="button">{_title(column)}</button>'
    return f'<th scope="col"{_classes(column)}{words} aria-sort="none">{button}</th>'


def _title(column: Column) -> str:
    whose = f'<span class="whose">{escape(column.whose)}</span>' if column.whose else ""
    return _SYMBOL.sub(r"<i>\1</i><sub>\2</sub>", escape(column.header)) + whose
