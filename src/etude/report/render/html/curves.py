"""Learning curves of the runs of an arm, as means over its seeds, thin enough for a page."""

import csv
import math
from collections.abc import Callable, Sequence
from statistics import fmean
from typing import Any

from etude.runs.records import Run

POINTS = 150  # of one curve; more than the eye tells apart on a screen
_SHOWN = ("valid_perplexity", "loss")
_ALONG = ("step", "tokens", "seconds")

Row = dict[str, str]


def curves(runs: Sequence[Run]) -> dict[str, dict[str, Any]]:
    """What can be drawn of some runs of one arm.

    Returns:
        By metric, lists of equal length: `step`, `tokens`, `seconds` (means over the runs), `mean`, `low` and `high` of
        the metric over the runs; and `seeds`, their number. At each step that every run has logged, evenly thinned.
        No metric that some run has not logged.
    """
    logged = [rows for run in runs if (rows := _rows(run))]
    found = {}
    for metric in _SHOWN:
        by_step = [{int(float(row["step"])): row for row in rows if _is_number(row.get(metric))} for rows in logged]
        steps = sorted(set.intersection(*map(set, by_step))) if by_step else []
        if steps:
            found[metric] = _curve([[rows[step] for rows in by_step] for step in thin_steps(steps, POINTS)], metric)
    return found


def thin_steps(steps: Sequence[int], most: int) -> list[int]:
    """At most so many of the steps, evenly spaced, the first and the last among them."""
    if len(steps) <= most:
        return list(steps)
    return [steps[round(index * (len(steps) - 1) / (most - 1))] for index in range(most)]


def _curve(points: Sequence[Sequence[Row]], metric: str) -> dict[str, Any]:
    along = {key: [_short(fmean(float(row[key]) for row in point)) for point in points] for key in _ALONG}
    values = [[float(row[metric]) for row in point] for point in points]
    over: dict[str, Callable[[list[float]], float]] = {"mean": fmean, "low": min, "high": max}
    return {
        "seeds": len(points[0]),
        **along,
        **{key: [_short(of(point)) for point in values] for key, of in over.items()},
    }


def _rows(run: Run) -> list[Row]:
    """What a run has logged, without a row that it is just writing; a run that has written nothing yet has none."""
    file = run.run_dir.metrics_file
    if not file.is_file():
        return []
    whole, _, _ = file.read_text(encoding="utf-8", errors="replace").rpartition("\n")
    return [row for row in csv.DictReader(whole.splitlines()) if all(_is_number(row.get(key)) for key in _ALONG)]


def _is_number(text: str | None) -> bool:
    """Whether a metric was logged, and had not diverged."""
    try:
        return math.isfinite(float(text or "nan"))
    except ValueError:
        return False


def _short(value: float) -> float:
    """Six figures: the page is to be small."""
    return float(f"{value:.6g}")
