"""How a report looks: in a terminal, and in Markdown. What has a star is bold."""

from dataclasses import replace

from rich import box
from rich.console import Console, ConsoleOptions, JustifyMethod, RenderResult
from rich.measure import Measurement
from rich.table import Table
from rich.text import Text

from etude.report.rows import STAR, Column, Row, Rows

_STYLES = {"paper": "dim"}


class Drawn:
    """The table for a terminal, with its notes below; where it is too wide, each arm's changes share one column."""

    def __init__(self, rows: Rows) -> None:
        self.rows = rows

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        rows = self.rows
        layouts = (_table(rows, gap=2), _table(rows, gap=1), _table(narrow(rows), gap=1))
        room = options.update(width=10_000)
        fitting = [table for table in layouts if Measurement.get(console, room, table).maximum <= options.max_width]
        yield fitting[0] if fitting else layouts[-1]
        yield Text()
        yield from (Text(note) for note in (*rows.notes, *rows.left_out))


def narrow(rows: Rows) -> Rows:
    """The same rows with what an arm is in one column: "h=1, d_k=64, d_v=64"."""
    told = [index for index, column in enumerate(rows.columns) if column.about_arm]
    if not told:
        return rows
    first, end = told[0], told[-1] + 1
    columns = [*rows.columns[:first], Column("what it is", words=True), *rows.columns[end:]]
    shorter = []
    for row in rows.rows:
        words = [f"{rows.columns[index].header}={row.cells[index]}" for index in told if row.cells[index]]
        shorter.append(Row(row.group, [*row.cells[:first], ", ".join(words), *row.cells[end:]], row.run))
    return replace(rows, columns=columns, rows=shorter)


def markdown(rows: Rows) -> str:
    """The same table and notes in Markdown."""
    headers = [f"{column.header} {column.whose}".strip() for column in rows.columns]
    lines = [f"**{rows.title}**", "", _line(headers)]
    lines.append(_line([":--" if column.words else "--:" for column in rows.columns]))
    lines += [_line(row.cells) for row in rows.rows]
    return "\n".join([*lines, "", *(f"{note}\n" for note in (*rows.notes, *rows.left_out))])


def _table(rows: Rows, gap: int) -> Table:
    """Columns `gap` apart, and rules between the groups of arms."""
    table = Table(
        title=rows.title, title_style="bold", title_justify="left", box=box.HORIZONTALS, show_edge=False, padding=0
    )
    for column in rows.columns:
        header = Text("\n".join([*column.header.split(" ", 1), column.whose] if column.whose else [column.header]))
        justify: JustifyMethod = "left" if column.words else "right"
        style = _STYLES.get(column.whose, "")
        table.add_column(header, justify=justify, no_wrap=not column.words, overflow="fold", style=style)
    for row, following in zip(rows.rows, [*rows.rows[1:], None], strict=True):
        last = following is None or following.group != row.group
        cells = [_cell(cell, column) for cell, column in zip(row.cells, rows.columns, strict=True)]
        table.add_row(*cells, end_section=last, style="" if row.run else "dim")
    return table


def _cell(cell: str, column: Column) -> Text:
    """A star does not push its number out of line with the others."""
    if cell.endswith(STAR):
        return Text(cell, style="bold")
    return Text(f"{cell} " if column.starred else cell)


def _line(cells: list[str]) -> str:
    escaped = [cell.replace("|", "\\|") for cell in cells]
    starred = [f"**{cell.removesuffix(STAR)}**\\{STAR}" if cell.endswith(STAR) else cell for cell in escaped]
    return f"| {' | '.join(starred)} |"
