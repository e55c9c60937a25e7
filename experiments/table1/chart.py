"""Draw the cost of each layer as log-log plots in SVG."""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from typing import Any

_WIDTH, _HEIGHT = 330, 250  # of a panel
_LEGEND = 30  # height of the legend
_LEFT, _TOP, _INNER_WIDTH, _INNER_HEIGHT = 52, 30, 262, 176
_COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#444444")  # Okabe and Ito's palette
_STYLE = (
    "<style>.layers rect{fill:#fff}.layers text{fill:#1d1d1b}.layers .grid{stroke:#ddd}"
    ".layers :is(line,polyline).dashed{stroke-dasharray:5 4}</style>"
)

Found = Mapping[str, Any]
Points = list[tuple[float, float]]


@dataclass(frozen=True)
class Panel:
    """One plot, with a line for each name."""

    title: str
    axis: str
    lines: dict[str, Points]


def draw_layers(record: Found) -> str:
    """Draw FLOPs, time and memory over n, d and k or r, operations over n, and paths over n and k or r, in one SVG."""
    most = {size: max(record["sizes"][size]) for size in "nd"}
    costs: dict[str, Callable[[Found], float]] = {
        "FLOPs, forward": lambda cost: cost["flops"],
        "milliseconds, forward and backward": lambda cost: 1e3 * (cost["forward"] + cost["backward"]),
        "bytes kept for backward": lambda cost: cost["bytes"],
    }
    panels = []
    for along in ("n", "d", "k, r"):
        fixed = {size: value for size, value in most.items() if size != along}
        label = ", ".join(f"{size} = {value}" for size, value in fixed.items())
        panels += [
            Panel(f"{title} ({label})", along, _lines(record, "costs", along, fixed, value))
            for title, value in costs.items()
        ]
    chain = _lines(record, "operations", "n", {}, lambda one: one["operations"])
    panels.append(Panel("operations that wait for each other", "n", chain))
    for along, fixed in (("n", {}), ("k, r", {"n": most["n"]})):
        label = f" (n = {most['n']})" if fixed else ""
        panels.append(
            Panel(f"longest path{label}", along, _lines(record, "path", along, fixed, lambda one: one["path"]))
        )
    return draw([panel for panel in panels if panel.lines])


def _lines(
    record: Found, of: str, along: str, fixed: Mapping[str, int], value: Callable[[Found], float | None]
) -> dict[str, Points]:
    """Collect a line for each layer, over n, d, or its own k or r.

    k and r have their first value unless they are `fixed` or on the axis.
    """
    lines = {}
    for name, found in record["layers"].items():
        size = next((size for size in ("k", "r") if size in found[of][0]), "") if along == "k, r" else along
        others = {other: record["sizes"][other][0] for other in ("k", "r") if other != size} | dict(fixed)
        chosen = [
            p for p in found[of] if size in p and all(p[other] == at for other, at in others.items() if other in p)
        ]
        points = [(p[size], number) for p in chosen if (number := value(p))]
        if points:
            lines[name] = points
    return lines


def draw(panels: Sequence[Panel], columns: int = 3) -> str:
    """Draw the panels below a legend."""
    rows = -(-len(panels) // columns)
    names = list(dict.fromkeys(name for panel in panels for name in panel.lines))
    looks = {name: _look(i) for i, name in enumerate(names)}
    places = [(_WIDTH * (i % columns), _HEIGHT * (i // columns) + _LEGEND) for i in range(len(panels))]
    drawn = [
        f'<g transform="translate({x} {y})">{"".join(_panel(panel, looks))}</g>'
        for (x, y), panel in zip(places, panels, strict=True)
    ]
    legend = [
        f'<line x1="{x}" x2="{x + 30}" y1="12" y2="12" {looks[name]}/>{_text(x + 38, 16, name)}'
        for name, x in zip(names, range(_LEFT, _LEFT + 160 * len(names), 160), strict=True)
    ]
    size = f"{columns * _WIDTH} {rows * _HEIGHT + _LEGEND}"
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {size}" class="layers" role="img" '
        f'aria-label="What each layer costs, as log-log plots" font-family="sans-serif" font-size="11">{_STYLE}'
        f'<rect width="100%" height="100%"/>{"".join(legend)}{"".join(drawn)}</svg>\n'
    )


def _panel(panel: Panel, looks: dict[str, str]) -> Iterable[str]:
    """Draw one panel; the axes end at powers of two (x) and of ten (y)."""
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
        yield f'<line x1="{x:.1f}" x2="{x:.1f}" y1="{_TOP}" y2="{bottom}" class="grid"/>'
        yield _text(x, bottom + 15, f"{2**power}", 'text-anchor="middle"')
    for power in range(low, high + 1):
        y = up(10**power)
        yield f'<line x1="{_LEFT}" x2="{_LEFT + _INNER_WIDTH}" y1="{y:.1f}" y2="{y:.1f}" class="grid"/>'
        yield _text(_LEFT - 6, y + 4, f"1e{power}", 'text-anchor="end"')
    yield _text(_LEFT + _INNER_WIDTH / 2, bottom + 30, panel.axis, 'text-anchor="middle" font-style="italic"')
    for name, line in panel.lines.items():
        points = " ".join(f"{across(x):.1f},{up(y):.1f}" for x, y in line)
        yield f'<polyline points="{points}" {looks[name]} fill="none"/>'
        for x, y in line:
            yield f'<circle cx="{across(x):.1f}" cy="{up(y):.1f}" r="1" {looks[name]}>'
            yield f"<title>{escape(name)}, {panel.axis} = {x}: {y:.4g}</title></circle>"


def _look(place: int) -> str:
    """Return the style of a line; every other line is dashed, so that a line below it remains visible."""
    dashed = ' class="dashed"' * (place % 2)
    return f'stroke="{_COLOURS[place % len(_COLOURS)]}" stroke-width="2"{dashed}'


def _text(x: float, y: float, text: str, style: str = "") -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" {style}>{escape(text)}</text>'
