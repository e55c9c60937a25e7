"""The paper's scores beside ours: differences in nats, and whether the order is the same.

The scores themselves are of other data and another size.
"""

from etude.report.comparison import Compared, Point
from etude.report.figures.figure import (
    COLOUR,
    Figure,
    Layout,
    axis,
    error_bars,
    extent,
    format_ends,
    format_known,
    marks,
)
from etude.report.statistics import Interval, RankCorrelation
from etude.report.wording import format_fixed

_BEHIND = {"layer": "below", "line": {"width": 0}}


def order(compared: Compared, metric: str) -> Figure | None:
    """Draw the paper's score of each arm against ours; None if fewer than two arms have both."""
    arms = [arm for arm in compared.arms if arm.paper.get(metric) is not None and metric in arm.scores and arm.runs]
    if len(arms) < 2:
        return None
    found, ranks, names = compared.study.metrics[metric], compared.ranks.get(metric), [arm.arm for arm in arms]
    digits, label = found.digits, found.label
    theirs, ours = [arm.paper[metric] or 0.0 for arm in arms], [arm.means[metric].value for arm in arms]
    symbols = ["diamond" if name == compared.baseline.arm else "circle-open" for name in names]
    shape = f"%{{customdata}}: paper %{{x:.{digits}f}}, ours %{{y:.{digits}f}}<extra></extra>"
    rho = _rank("Spearman’s ρ", ranks.spearman) if ranks else ""
    tau = _rank("Kendall’s τ", ranks.kendall) if ranks else ""
    why = "Ours is of other data and another size than the paper’s, so the order of the arms is what can be compared."
    return Figure(
        [marks(names, theirs, ours, symbols, hovertemplate=shape, meta={"first": [compared.baseline.arm]})],
        {"height": 460, "xaxis": axis(f"{label} in the paper"), "yaxis": axis(f"{label}, ours")},
        f"{label} of {len(arms)} arms, the paper’s against ours. {rho}",
        " ".join(filter(None, (rho, tau, why))),
        ["arm", "paper", "ours"],
        [[n, format_fixed(x, digits), format_fixed(y, digits)] for n, x, y in zip(names, theirs, ours, strict=True)],
    )


def agreement(compared: Compared) -> Figure | None:
    """Draw each arm's difference from the baseline, the paper's against ours; None for a study without criteria.

    With the diagonal, and the margin within which a tie counts as one.
    """
    if not compared.agreement:
        return None
    criteria, points = compared.agreement.criteria, [*compared.agreement.points.values()]
    across = extent([point.paper for point in points] or [0.0])  # a bar may be longer than all differences
    up = extent([-criteria.margin, criteria.margin, *(e for p in points for e in (p.ours, *(p.interval or ())))])
    line = compared.agreement.line
    correlation = ""
    if line.r is not None and line.slope is not None:
        of_r = f" ({format_ends(line.r_interval, 2)})" if line.r_interval else ""
        slope = f"{format_fixed(line.slope, 2)} ({format_ends(line.slope_interval, 2)})"
        correlation = f"Pearson’s r = {format_fixed(line.r, 2)}{of_r}, slope {slope}, with intervals of 95 %."
    band = {"type": "rect", "xref": "paper", "x0": 0, "x1": 1, "y0": -criteria.margin, "y1": criteria.margin}
    diagonal = {"type": "line", "x0": across[0], "y0": across[0], "x1": across[1], "y1": across[1], "layer": "below"}
    label = compared.study.lead.compared_label
    title = f"difference in {label} in the paper, nats a token"
    of_theirs = f"the rounding of the paper’s {compared.study.lead.digits} decimals"
    of_theirs = of_theirs if criteria.deviations is None else criteria.meaning
    layout: Layout = {
        "height": 480,
        "showlegend": True,
        "legend": {"orientation": "h", "y": 1.1},
        "xaxis": axis(title, zeroline=True, range=across),
        "yaxis": axis("ours", zeroline=True, range=up),
        "shapes": [
            band | _BEHIND | {"fillcolor": "rgba(128,128,128,0.16)"},
            diagonal | {"line": {"width": 1, "dash": "dash", "color": COLOUR}},
        ],
    }
    told = [
        correlation,
        "On the dashed diagonal an arm costs as much here as in the paper.",
        f"Shaded: within {criteria.margin:g} nats of the baseline, where a tie counts as one; open marks are ties in "
        f"the paper (within {criteria.meaning}). Bars: {of_theirs}; of ours, 95 % over seeds where there are several.",
    ]
    several = compared.several_seeds
    return Figure(
        [
            _trace([point for point in points if point.large], "sign counts", "circle"),
            _trace([point for point in points if not point.large], "tie in the paper", "circle-open"),
        ],
        layout,
        f"Difference from {compared.baseline.arm} in {label} of {len(points)} arms, the paper’s against ours. "
        f"{correlation}",
        " ".join(filter(None, told)),
        ["arm", "paper", "its range", "ours", "95 % interval", "counts as", "agrees"],
        [
            [
                point.arm,
                format_known(point.paper, 3, sign=True),
                format_ends(point.paper_range, 3),
                format_known(point.ours, 3, sign=True),
                format_ends(point.interval, 3),
                "sign" if point.large else "tie",
                _agrees(point, several),
            ]
            for point in points
        ],
        narrow={"xaxis": layout["xaxis"] | {"title": {"text": title.replace(", ", ",<br>"), "standoff": 8}}},
    )


def _trace(points: list[Point], name: str, symbol: str) -> dict[str, object]:
    theirs, ours = [point.paper for point in points], [point.ours for point in points]
    return marks(
        [point.arm for point in points],
        theirs,
        ours,
        symbol,
        name=name,
        error_x=error_bars(theirs, [point.paper_range for point in points]),
        error_y=error_bars(ours, [point.interval for point in points]),
        hovertemplate="%{customdata}: paper %{x:+.3f}, ours %{y:+.3f} nats<extra></extra>",
    )


def _agrees(point: Point, several_seeds: bool) -> str:
    """Say whether an arm agrees with the paper, as the table does: a tie counts where a test shows it."""
    if point.agrees and not point.shown and several_seeds:
        return "within the margin, not shown"
    return "yes" if point.agrees else "no"


def _rank(name: str, found: RankCorrelation) -> str:
    if found.value is None:
        return f"{name}: {found.why_not}."
    interval: Interval | None = found.interval
    return (
        f"{name} = {format_fixed(found.value, 2)}{f', 95 % interval {format_ends(interval, 2)}' if interval else ''}."
    )
