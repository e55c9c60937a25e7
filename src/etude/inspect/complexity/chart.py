"""What each layer costs, drawn: log-log plots as SVG."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from html import escape
from typing import Any

_WIDTH, _HEIGHT = 330, 250  # of a panel
_LEFT, _TOP, _INNER_WIDTH, _INNER_HEIGHT = 52, 30, 262, 176
_COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#444444")  # Okabe and Ito's

Points = list[tuple[float, float]]


@dataclass(frozen=True)
class Panel:
    """One plot: a line for each name."""

    title: str
    axis: str
    lines: dict[str, Points]


def draw_layers(found: Sequence[dict[str, Any]]) -> str:
    """FLOPs, time and memory over n and over d, and operations and paths over n: one SVG."""
    most = {size: max(cost[size] for row in found for cost in row["costs"]) for size in "nd"}
    costs = {
        "FLOPs, forward": lambda cost: cost["flops"],
        "milliseconds, forward and backward": lambda cost: 1e3 * (cost["forward"] + cost["backward"]),
        "bytes kept for backward": lambda cost: cost["bytes"],
    }
    panels = [
        Panel(
            f"{title} ({fixed} = {most[fixed]})",
            size,
            {row["layer"]: [(c[size], value(c)) for c in row["costs"] if c[fixed] == most[fixed]] for row in found},
        )
        for size, fixed in (("n", "d"), ("d", "n"))
        for title, value in costs.items()
    ]
    for title, key, number in (("operations in a chain", "chain", "operations"), ("longest path", "path", "length")):
        lines = {row["layer"]: [(one["n"], one[number]) for one in row[key] if one[number]] for row in found}
        panels.append(Panel(title, "n", lines))
    return draw(panels)


def draw(panels: Sequence[Panel], columns: int = 3) -> str:
    """The panels, and a legend in the place after the last."""
    rows = -(-(len(panels) + 1) // columns)
    names = list(dict.fromkeys(name for panel in panels for name in panel.lines))
    colours = {name: _COLOURS[i % len(_COLOURS)] for i, name in enumerate(names)}
    places = [(_WIDTH * (i % columns), _HEIGHT * (i // columns)) for i in range(len(panels) + 1)]
    drawn = [_group(place, _panel(panel, colours)) for place, panel in zip(places, panels, strict=False)]
    legend = [
        f'<line x1="60" x2="90" y1="{y}" y2="{y}" stroke="{colours[name]}" stroke-width="2"/>{_text(98, y + 4, name)}'
        for y, name in zip(range(60, 60 + 24 * len(names), 24), names, strict=True)
    ]
    size = f"{columns * _WIDTH} {rows * _HEIGHT}"
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {size}" font-family="sans-serif" font-size="11">'
        f'<rect width="100%" height="100%" fill="white"/>{"".join(drawn)}{_group(places[-1], legend)}</svg>\n'
    )


def _panel(panel: Panel, colours: dict[str, str]) -> Iterable[str]:
    """Axes from the least to the largest power that holds all points, of two along and of ten upwards."""
    xs, ys = zip(*(point for line in panel.lines.values() for point in line), strict=True)
    left, right = math.floor(math.log2(min(xs))), max(math.ceil(math.log2(max(xs))), math.floor(math.log2(min(xs))) + 1)
    low = math.floor(math.log10(min(ys)))
    high = max(math.ceil(math.log10(max(ys))), low + 1)

    def across(x: float) -> float:
        return _LEFT + _INNER_WIDTH * (math.log2(x) - left) / (right - left)

    def up(y: float) -> float:
        return _TOP + _INNER_HEIGHT * (high - math.log10(y)) / (high - low)

    yield _text(_LEFT, 18, panel.title, 'font-weight="bold"')
    bottom = _TOP + _INNER_HEIGHT
    for power in range(left, right + 1):
        x = across(2**power)
        yield f'<line x1="{x:.1f}" x2="{x:.1f}" y1="{_TOP}" y2="{bottom}" stroke="#ddd"/>'
        yield _text(x, bottom + 15, f"{2**power}", 'text-anchor="middle"')
    for power in range(low, high + 1):
        y = up(10**power)
        yield f'<line x1="{_LEFT}" x2="{_LEFT + _INNER_WIDTH}" y1="{y:.1f}" y2="{y:.1f}" stroke="#ddd"/>'
        yield _text(_LEFT - 6, y + 4, f"1e{power}", 'text-anchor="end"')
    yield _text(_LEFT + _INNER_WIDTH / 2, bottom + 30, panel.axis, 'text-anchor="middle" font-style="italic"')
    for name, line in panel.lines.items():
        told = " ".join(f"{across(x):.1f},{up(y):.1f}" for x, y in line)
        yield f'<polyline points="{told}" fill="none" stroke="{colours[name]}" stroke-width="2"/>'
        yield from (f'<circle cx="{across(x):.1f}" cy="{up(y):.1f}" r="2.5" fill="{colours[name]}"/>' for x, y in line)


def _group(place: tuple[int, int], parts: Iterable[str]) -> str:
    return f'<g transform="translate({place[0]} {place[1]})">{"".join(parts)}</g>'


def _text(x: float, y: float, text: str, style: str = "") -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" {style}>{escape(text)}</text>'
