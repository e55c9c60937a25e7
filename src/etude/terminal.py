"""The console for commands that print tables, and the formats of values in them."""

import os
import re
from collections.abc import Callable, Sequence
from typing import Any

from rich.console import Console
from rich.measure import Measurement
from rich.table import Table

_WIDEST = 10_000  # columns, in which any table fits
_LONGEST_NUMBER = 8  # characters
NUMBER = re.compile(r"[-+]?\d+(\.\d*)?(e[-+]?\d+)?")
_SECTION = re.compile(r"^(model[./]|budget\.)")  # prefixes that a reader does not need
PIPE_WIDTH = 120  # columns, if the output is no terminal and COLUMNS is not set


def console(**options: Any) -> Console:
    """Make a rich console as wide as the terminal; in a pipe, without colours and 120 columns wide.

    Text is printed verbatim: brackets and colons, which occur in titles and overrides, are no markup.

    Args:
        options: arguments of rich's `Console`.
    """
    made = Console(highlight=False, markup=False, emoji=False, **options)
    said = os.environ.get("COLUMNS", "")
    if "width" not in options and (not made.width or not (made.is_terminal or said.isdigit())):
        made.width = PIPE_WIDTH
    return made


def fit_table(
    out: Console, render: Callable[[Sequence[str]], Table], omissible: Sequence[str]
) -> tuple[Table, Sequence[str]]:
    """Render a table without as many of its columns as do not fit the console.

    Args:
        out: where it will be printed.
        render: makes the table without some of the columns `omissible`.
        omissible: the columns that can be left out, the first before the others.

    Returns:
        The table, and what was left out.
    """
    for count in range(len(omissible) + 1):
        table = render(omissible[:count])
        if needed_width(out, table) <= out.width:
            break
    return table, omissible[:count]


def needed_width(out: Console, table: Table) -> int:
    """Return the fewest columns of a terminal in which no cell of the table is cut off.

    The table's columns without line breaks are made to keep that width, also where the terminal has less. A column with
    a `min_width` counts as that wide: its words are broken.
    """
    wide = out.options.update(width=_WIDEST)
    excess = 0
    for column in table.columns:  # rich's minimum is the longest word
        cells = [Measurement.get(out, wide, cell) for cell in (column.header, *column.cells, column.footer)]
        if column.no_wrap:
            column.min_width = max(cell.maximum for cell in cells)
        elif column.min_width is not None:
            excess += max(0, max(cell.minimum for cell in cells) - column.min_width)
    return Measurement.get(out, wide, table).minimum - excess


def format_value(value: Any) -> str:
    """Format a value of a config as it is typed in an override: null, true, 0.1."""
    return "null" if value is None else str(value).lower() if isinstance(value, bool) else str(value)


def shorten_value(value: str) -> str:
    """Round a long number in an override or a cell, such as one that was drawn, to four figures."""
    return f"{float(value):.4g}" if NUMBER.fullmatch(value) and len(value) > _LONGEST_NUMBER else value


def shorten_override(override: str) -> str:
    """Shorten an override for a narrow column: dropout=0.08662 for model.dropout=0.08661795578691191."""
    key, equals, value = override.partition("=")
    return f"{_SECTION.sub('', key)}{equals}{shorten_value(value)}"


def format_duration(seconds: float | None) -> str:
    """Format seconds as 0:42, 12:05 or 3:02:41; empty for None."""
    if seconds is None:
        return ""
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"


def format_number(value: float | None, digits: int) -> str:
    """Format a number as 1,234.50; empty for None."""
    return "" if value is None else f"{value:,.{digits}f}"
