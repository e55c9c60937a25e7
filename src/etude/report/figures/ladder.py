"""A ladder: the difference of an arm against compute, and what came of the predictions of a rung that was held out."""

import math
from typing import Any

import numpy as np

from etude.report.figures.figure import ACCENT, COLOUR, Figure, axis, error_bars, extent, format_ends, format_known
from etude.report.ladder import Ladder, format_compute
from etude.report.statistics import Interval, carry

_POINTS = 60  # of a band


def difference(ladder: Ladder, arm: str) -> Figure | None:
    """Draw the differences of one arm at each rung, its law with a band to the target, and what was held out.

    Returns:
        None if the arm has no law.
    """
    law = ladder.laws.get(arm)
    if law is None:
        return None
    metric, digits = ladder.metric, ladder.metric.compared_digits
    there = [n for n, found in enumerate(ladder.differences[arm]) if found]
    came = [carry(law, ladder.differences[arm][n], math.inf) for n in there]
    grid = np.linspace(ladder.x[0], ladder.target, _POINTS).tolist()
    band = [law.at(x) for x in grid]
    compute = [math.exp(x) for x in grid]
    held = [
        (x, one.predicted[arm])
        for x, one in zip(ladder.x[-len(ladder.judged) :], ladder.judged, strict=True)
        if arm in one.predicted
    ]
    marker = {"color": COLOUR, "size": 9}
    accent = {"color": ACCENT, "size": 9, "symbol": "diamond-open"}
    shape = f"%{{x:.2e}}: %{{y:+.{digits}f}}"
    target = law.at(ladder.target)
    traces: list[dict[str, Any]] = [
        {
            "x": [*compute, *reversed(compute)],
            "y": [*(one.interval.high for one in band), *(one.interval.low for one in reversed(band))],
            "fill": "toself",
            "fillcolor": f"{COLOUR}33",
            "line": {"width": 0},
            "hoverinfo": "skip",
            "mode": "lines",
        },
        {
            "x": compute,
            "y": [one.value for one in band],
            "mode": "lines",
            "line": {"color": COLOUR},
            "hoverinfo": "skip",
        },
        {
            "x": [math.exp(ladder.x[n]) for n in there],
            "y": [one.value for one in came],
            "mode": "markers",
            "marker": marker,
            "error_y": error_bars([one.value for one in came], [one.interval for one in came]),
            "hovertemplate": f"{shape}<extra>came</extra>",
        },
        {
            "x": [1.06 * math.exp(x) for x, _ in held],  # beside what came
            "customdata": [f"{math.exp(x):.2e}" for x, _ in held],
            "y": [one.value for _, one in held],
            "mode": "markers",
            "marker": accent,
            "error_y": error_bars([one.value for _, one in held], [one.interval for _, one in held], color=ACCENT),
            "hovertemplate": f"%{{customdata}}: %{{y:+.{digits}f}}<extra>held out, predicted</extra>",
        },
        {
            "x": [math.exp(ladder.target)],
            "y": [target.value],
            "mode": "markers",
            "marker": marker | {"symbol": "star", "size": 13},
            "hovertemplate": f"{shape}<extra>target</extra>",
        },
    ]
    rows = [
        [ladder.rungs[n].label, "came", *_cells(one.value, one.interval, digits)]
        for n, one in zip(there, came, strict=True)
    ]
    rows += [[format_compute(x), "held out, predicted", *_cells(one.value, one.interval, digits)] for x, one in held]
    rows.append([format_compute(ladder.target), "target", *_cells(target.value, target.interval, digits)])
    zero = {
        "type": "line",
        "xref": "paper",
        "x0": 0,
        "x1": 1,
        "y0": 0,
        "y1": 0,
        "line": {"color": "#888", "dash": "dot"},
    }
    return Figure(
        traces,
        {
            "height": 460,
            "showlegend": False,
            "shapes": [zero],
            "xaxis": axis("compute of a run: 6 × parameters × tokens", type="log", exponentformat="power"),
            "yaxis": axis(f"{metric.compared_label}, difference from {ladder.baseline}"),
        },
        f"{arm}: difference from {ladder.baseline} in {metric.compared_label} over compute, to the target",
        "Dots came, with 90 % of the luck of seeds; the band is the law of all rungs with its 90 % interval, to the "
        "target (star). Diamonds are what the rungs below the two largest predicted of these.",
        ["compute", "", "difference", "90 % interval"],
        rows,
    )


def predicted(ladder: Ladder, rung: int) -> Figure | None:
    """Draw what was predicted of each arm's difference at a rung that was held out, and what came.

    Args:
        ladder: what it shows.
        rung: which of the held-out rungs, the smaller first.

    Returns:
        None if nothing was predicted there.
    """
    judged, size = ladder.judged[rung], ladder.rungs[len(ladder.rungs) - len(ladder.judged) + rung]
    arms = sorted(judged.predicted, key=lambda arm: judged.predicted[arm].value)
    if not arms:
        return None
    metric, digits = ladder.metric, ladder.metric.compared_digits
    values, intervals = ([getattr(judged.predicted[arm], of) for arm in arms] for of in ("value", "interval"))
    shape = f"%{{y}}: %{{x:+.{digits}f}}"
    traces: list[dict[str, Any]] = [
        {
            "x": values,
            "y": arms,
            "mode": "markers",
            "marker": {"color": COLOUR, "size": 9, "symbol": "line-ns-open"},
            "error_x": error_bars(values, intervals, thickness=5, color=f"{COLOUR}77"),
            "hovertemplate": f"{shape}<extra>predicted</extra>",
        }
    ]
    for name, symbol, is_within in (("came, within", "circle", True), ("came, outside", "x", False)):
        some = [arm for arm in arms if (arm in judged.covered) is is_within]
        marker = {"color": ACCENT, "size": 9, "symbol": symbol}
        came = [judged.came[arm] for arm in some]
        hover = f"{shape}<extra>{name}</extra>"
        traces.append({"x": came, "y": some, "mode": "markers", "marker": marker, "hovertemplate": hover})
    ends = [end for interval in intervals for end in interval]
    title = f"{metric.compared_label}, difference from {ladder.baseline}"
    names = {"type": "category", "categoryorder": "array", "categoryarray": arms, "dtick": 1}
    return Figure(
        traces,
        {
            "height": 90 + 24 * len(arms),
            "showlegend": False,
            "xaxis": axis(title, zeroline=True, zerolinewidth=2, range=extent([0, *ends, *judged.came.values()])),
            "yaxis": axis("", range=[-0.7, len(arms) - 0.3], fixedrange=True) | names,
        },
        f"{size.label}, held out: {len(judged.covered)} of {len(arms)} differences from {ladder.baseline} came within "
        "their predicted 90 % intervals",
        "A bar is what the rungs below the two largest predicted, with its 90 % interval; a dot is what came, and a "
        "cross what came outside.",
        ["arm", "predicted", "90 % interval", "came", "within"],
        [
            [arm, *_cells(value, interval, digits), format_known(judged.came[arm], digits, sign=True), within]
            for arm, value, interval in zip(arms, values, intervals, strict=True)
            for within in ["yes" if arm in judged.covered else "no"]
        ],
    )


def _cells(value: float, interval: Interval, digits: int) -> list[str]:
    return [format_known(value, digits, sign=True), format_ends(interval, digits)]
