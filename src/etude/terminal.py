"""Where the verbs that print tables write, and how they write a value."""

import os
from typing import Any

from rich.console import Console

PIPE_WIDTH = 120  # columns, where nobody says how wide the paper is


def console(**options: Any) -> Console:
    """As wide as the terminal; plain and 120 columns wide in a pipe.

    Text is printed as it stands: brackets and colons, which users write in titles and overrides, mean nothing.

    Args:
        options: of rich's own `Console`.
    """
    made = Console(highlight=False, markup=False, emoji=False, **options)
    if not made.is_terminal and "width" not in options and "COLUMNS" not in os.environ:
        made.width = PIPE_WIDTH
    return made


def format_value(value: Any) -> str:
    """A value of a config as a person would type it."""
    return "null" if value is None else str(value).lower() if isinstance(value, bool) else str(value)


def format_duration(seconds: float | None) -> str:
    """Seconds as a person reads them: 0:42, 12:05, 3:02:41."""
    if seconds is None:
        return ""
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"


def format_number(value: float | None, digits: int) -> str:
    """1,234.50; nothing where there is none."""
    return "" if value is None else f"{value:,.{digits}f}"
