"""A figure as plotly's JSON and in words, and what all figures have alike: axes, marks and error bars."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from etude.report.statistics import Interval
from etude.report.wording import format_fixed

if TYPE_CHECKING:
    from plotly.graph_objects import Figure as PlotlyFigure

Layout = dict[str, Any]

COLOUR = "#2f7fc1"  # of Okabe and Ito's, made to stand out from white and from black alike
ACCENT = "#d0591a"  # for one thing among others
PHONE = 390  # px: the width for which `Figure.narrow` is made
UNKNOWN = "–"
_DECADE = 12  # the ratio of two values from which an axis is logarithmic


@dataclass(frozen=True)
class Figure:
    """A figure.

    Attributes:
        traces: what plotly draws.
        layout: plotly's layout, without size and theme.
        label: one sentence that says what the figure shows.
        caption: how to read it.
        head: the header of the table with the same numbers.
        rows: its rows.
        narrow: the parts of the layout that differ on a phone.
    """

    traces: list[dict[str, Any]]
    layout: Layout
    label: str
    caption: str
    head: list[str]
    rows: list[list[str]]
    narrow: Layout = field(default_factory=dict)

    def plotly(self) -> "PlotlyFigure":
        """Return it as a figure of plotly's, for a notebook or a file: `.show()`, `.write_image("forest.svg")`."""
        from plotly.graph_objects import Figure as PlotlyFigure

        return PlotlyFigure(self.traces, {"template": "plotly_white", "title": {"text": self.label}} | self.layout)


def axis(title: str, values: Iterable[float | None] = (), **more: Any) -> Layout:
    """Return the layout of an axis; it is logarithmic if the values are above 0 and span more than a decade."""
    shared: Layout = {"automargin": True, "ticks": "outside", "ticklen": 4, "zeroline": False}
    shared |= {"title": {"text": title, "standoff": 8}} | more
    known = [value for value in values if value is not None and not math.isnan(value)]
    least, most = min(known, default=1.0), max(known, default=1.0)
    if len(known) < 2 or least <= 0 or most < _DECADE * least:
        # For one value alone plotly would show its last digits.
        alone = {"range": [least / 2, 1.5 * least]} if known and 0 < least == most else {}
        return {"type": "linear"} | alone | shared
    digits = (1, 2, 5) if most < 1e4 * least else (1,)
    powers = range(math.floor(math.log10(least)), math.floor(math.log10(most)) + 1)
    return shared | {
        "type": "log",
        "tickvals": [digit * 10.0**power for power in powers for digit in digits],
        "tickformat": "~s" if least >= 1 else "~r",
        "title": shared["title"] | {"text": f"{title} (log scale)"},
    }


def extent(values: Sequence[float]) -> list[float]:
    """Return the range of an axis that leaves air beside the least and the largest of some values."""
    least, most = min(values), max(values)
    air = 0.08 * (most - least) or 1.0
    return [least - air, most + air]


def marks(names: Sequence[str], x: Sequence[float], y: Sequence[float], symbol: Any, **more: Any) -> dict[str, Any]:
    """Return a trace of marks with their names beside them."""
    marker = {"symbol": symbol, "size": 9, "color": COLOUR, "line": {"width": 1.5, "color": COLOUR}}
    named = {"customdata": names, "text": names, "textposition": "top center", "textfont": {"size": 12}}
    return {"x": x, "y": y, "mode": "markers+text", "cliponaxis": False, "marker": marker} | named | more


def error_bars(values: Sequence[float], intervals: Sequence[Interval | None], **more: Any) -> dict[str, Any]:
    """Return error bars from each value to the ends of its interval, of no length where it has none."""
    up, down = (
        [abs(end[at] - value) if end else 0 for value, end in zip(values, intervals, strict=True)] for at in (1, 0)
    )
    return {"type": "data", "symmetric": False, "array": up, "arrayminus": down} | {
        "color": COLOUR,
        "thickness": 1,
        "width": 0,
        **more,
    }


def format_known(value: float | None, digits: int, *, sign: bool = False) -> str:
    """Format a number with fixed digits, or a dash if it is not known."""
    return UNKNOWN if value is None else format_fixed(value, digits, sign)


def format_ends(interval: Interval | None, digits: int) -> str:
    """Format an interval as "0.41 to 0.93", or a dash if it is not known."""
    return " to ".join(format_fixed(end, digits) for end in interval) if interval else UNKNOWN
