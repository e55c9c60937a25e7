"""Render a report for the terminal and in Markdown. Cells with a star are bold."""

import re
from collections.abc import Iterable
from dataclasses import dataclass, replace

from rich import box
from rich.console import Console, ConsoleOptions, JustifyMethod, RenderResult
from rich.measure import Measurement
from rich.table import Table
from rich.text import Text

from etude.report.render.rows import STAR, Cell, Column, Row, Rows
from etude.terminal import needed_width

WHAT = "what it is"
"""The header of the column that holds all changed config values of an arm in a narrow table."""

_MARKUP = re.compile(r"[|`*\\]|(?<![^\W_])_|_(?![^\W_])|<(?=[a-zA-Z/!?])")  # in Markdown; not the _ of d_model
_NARROWEST = 12  # letters of that column, such as d_model=1024; longer words are broken where there is no room


@dataclass
class RenderedTable:
    """The table for a terminal, with its notes below.

    If it is too wide, the changed config values of an arm share one column; if that is still too wide, the table is
    broken before each metric but the first. Printed with `crop=False`, it cuts off no number in any terminal.
    """

    rows: Rows

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        for part in self._layout(console, options):
            if part.title:
                yield Text(part.title, "bold")  # rich would wrap the table's own title at the width of the table
            table = _table(part)
            if needed_width(console, table) > options.max_width:
                table = _table(part, narrowest=_NARROWEST)
                if (needed := needed_width(console, table)) > options.max_width:
                    table.width = needed  # rich would leave out whole columns; a line that is wrapped can be read
            yield table
            yield Text()
        for note in self.rows.paragraphs:
            yield Text(str(note), no_wrap=True, overflow="ignore") if note.is_command else Text(str(note))

    def _layout(self, console: Console, options: ConsoleOptions) -> list[Rows]:
        """Return the first layout that fits; in the narrow one, the column `WHAT` may wrap."""
        narrower, room = narrow(self.rows), options.update(width=10_000)
        if Measurement.get(console, room, _table(self.rows)).maximum <= options.max_width:
            return [self.rows]
        if needed_width(console, _table(narrower)) <= options.max_width:
            return [narrower]
        return split_by_metric(narrower)


def narrow(rows: Rows) -> Rows:
    """Merge the columns with an arm's config values into one: "h=1, d_k=64, d_v=64"."""
    about_arm = [index for index, column in enumerate(rows.columns) if column.about_arm]
    if not about_arm:
        return rows
    first, end = about_arm[0], about_arm[-1] + 1
    columns = [*rows.columns[:first], Column(WHAT, about_arm=True, words=True), *rows.columns[end:]]
    shorter = []
    for row in rows.rows:
        told = {rows.columns[index].header: row.cells[index].text for index in about_arm}
        words = Cell(", ".join(f"{header}={text}" for header, text in told.items() if text))
        shorter.append(Row(row.group, [*row.cells[:first], words, *row.cells[end:]], row.run))
    return replace(rows, columns=columns, rows=shorter)


def split_by_metric(rows: Rows) -> list[Rows]:
    """Split a table into one for each metric, each with the arms' names; the last also gets the remaining columns."""
    breaks = [index for index, column in enumerate(rows.columns) if column.breaks]
    parts: list[Rows] = []
    for start, end in zip([1, *breaks], [*breaks, len(rows.columns)], strict=True):
        kept = [0, *range(start, end)]
        columns = [rows.columns[index] for index in kept]
        cells = [replace(row, cells=[row.cells[index] for index in kept]) for row in rows.rows]
        parts.append(replace(rows, title="" if parts else rows.title, columns=columns, rows=cells))
    return parts


def markdown(rows: Rows) -> str:
    """Render the table and its notes in Markdown."""
    headers = [f"{column.header} {column.whose}".strip() for column in rows.columns]
    lines = [f"**{_escape(rows.title)}**", "", _line(map(_escape, headers))]
    lines.append(_line([":--" if column.words else "--:" for column in rows.columns]))
    lines += [_line(map(_bold, row.cells)) for row in rows.rows]
    notes = (f"    {n}\n" if n.is_command else f"{_escape(str(n), besides='|`')}\n" for n in rows.paragraphs)
    return "\n".join([*lines, "", *notes])


def _table(rows: Rows, narrowest: int | None = None) -> Table:
    """Make a rich table with rules between groups of arms; only config values in words may wrap.

    Given `narrowest`, words that are longer may be broken in the column `WHAT`.
    """
    table = Table(box=box.HORIZONTALS, show_edge=False, padding=0)
    for column in rows.columns:
        justify: JustifyMethod = "left" if column.words else "right"
        table.add_column(
            Text("\n".join([*column.header.split(" ", 1), column.whose] if column.whose else [column.header])),
            justify=justify,
            no_wrap=not (column.words and column.about_arm),
            overflow="fold",
            min_width=narrowest if column.header == WHAT else None,
            style="dim" if column.whose == "paper" else "",
        )
    for row, following in zip(rows.rows, [*rows.rows[1:], None], strict=True):
        last = following is None or following.group != row.group
        cells = [_cell(cell, column) for cell, column in zip(row.cells, rows.columns, strict=True)]
        table.add_row(*cells, end_section=last, style="" if row.run else "dim")
    return table


def _cell(cell: Cell, column: Column) -> Text:
    """Make a cell; in a column with stars, numbers without one get a space, so that digits stay aligned."""
    if cell.star:
        return Text(cell.text, style="bold")
    return Text(f"{cell.text} " if column.starred else cell.text)


def _bold(cell: Cell) -> str:
    return f"**{_escape(cell.plain)}**\\{STAR}" if cell.star else _escape(cell.plain)


def _line(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _escape(text: str, besides: str = "") -> str:
    """Escape what Markdown takes for markup, `besides` what is none here: a bar outside a table."""
    return _MARKUP.sub(lambda found: found[0] if found[0] in besides else f"\\{found[0]}", text)
