"""The difference of an arm from the baseline against compute: what came, what was predicted, and what is."""

import math

import numpy as np

from etude.report.figures.figure import ACCENT, COLOUR, Figure, axis, error_bars, format_ends, format_known
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
    traces = [
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
            "x": [1.06 * math.exp(x) for x, _ in held],
            "y": [one.value for _, one in held],
            "mode": "markers",
            "marker": accent,
            "error_y": error_bars([one.value for _, one in held], [one.interval for _, one in held], color=ACCENT),
            "hovertemplate": f"{shape}<extra>held out, predicted</extra>",
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


def _cells(value: float, interval: Interval, digits: int) -> list[str]:
    return [format_known(value, digits, sign=True), format_ends(interval, digits)]
