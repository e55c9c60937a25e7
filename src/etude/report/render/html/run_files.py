"""Read learning curves and analyses from run directories, shortened to what a page has room for."""

import json
import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from etude.report.comparison import ArmResult
from etude.store.metrics_file import read_metrics, to_number
from etude.store.records import Run

POINTS = 150  # of one curve; more would not be visible on a screen
ROOM = 400_000  # bytes of attention maps of all arms together; the rest of an analysis is small
_SHOWN = ("valid_perplexity", "loss")
_ALONG = ("step", "tokens", "seconds")


def curves(runs: Sequence[Run]) -> dict[str, dict[str, Any]]:
    """Compute the learning curves of some runs of one arm.

    Returns:
        By metric: lists of equal length, `step`, `tokens` and `seconds` (means over the runs), `mean`, `low` and `high`
        of the metric over the runs; and `seeds`, the number of runs. There is a point for each step that every run has
        logged, evenly thinned. A metric that some run has not logged is left out.
    """
    logged = [rows for run in runs if (rows := _rows(run))]
    found = {}
    for metric in [*_SHOWN, *dict.fromkeys(key for rows in logged for row in rows for key in row if _is_score(key))]:
        by_step = [{int(row["step"]): row for row in rows if metric in row} for rows in logged]
        if steps := thin_steps(sorted(set.intersection(*map(set, by_step))) if by_step else [], POINTS):
            keys = (*_ALONG, metric)
            points = np.array([[[rows[step][key] for step in steps] for key in keys] for rows in by_step])
            curve = dict(zip((*_ALONG, "mean"), points.mean(axis=0), strict=True))
            curve |= {"low": points[:, -1].min(axis=0), "high": points[:, -1].max(axis=0)}
            whole = {key: curve[key].round().astype(int).tolist() for key in ("step", "tokens")}
            found[metric] = (
                {"seeds": len(logged)} | {key: _shorten(along.tolist()) for key, along in curve.items()} | whole
            )
    return found


def thin_steps(steps: Sequence[int], most: int) -> list[int]:
    """Choose at most `most` of the steps, evenly spaced, with the first and the last."""
    return [steps[index] for index in np.linspace(0, len(steps) - 1, min(most, len(steps))).round().astype(int)]


def _rows(run: Run) -> list[dict[str, float]]:
    """Read the finite numbers that a run has logged."""
    logged = read_metrics(run.run_dir.metrics_file)
    table = ({key: to_number(row[key]) for key in row if key in (*_ALONG, *_SHOWN) or _is_score(key)} for row in logged)
    rows = ({key: value for key, value in row.items() if math.isfinite(value)} for row in table)
    return [row for row in rows if {*_ALONG} <= {*row}]


def _is_score(column: str) -> bool:
    """Return whether a column is a further score of each validation, such as valid_bleu."""
    return column.startswith("valid_") and column not in ("valid_loss", *_SHOWN)


def analyses(arms: Sequence[ArmResult]) -> dict[str, Any]:
    """Collect by arm the first `analysis.json` of its runs (see `etude.inspect.analyze`), with the `seed` of the run.

    If the attention maps of all arms do not fit, only the first arms keep theirs.
    """
    found = {arm.arm: analysis for arm in arms if (analysis := _analysis(arm.runs))}
    room = ROOM
    for analysis in found.values():
        room -= len(json.dumps(analysis.get("maps", [])))
        if room < 0:
            analysis["maps"] = []
    return found


def _analysis(runs: Sequence[Run]) -> dict[str, Any] | None:
    """Read the first valid analysis; a file that is incomplete or of another kind must not break the page."""
    for run in runs:
        try:
            content = run.run_dir.analysis_file.read_text(encoding="utf-8")
            analysis = json.loads(content, parse_constant=lambda _: None)
        except (OSError, ValueError):
            continue
        if isinstance(analysis, dict) and isinstance(analysis.get("heads"), list):
            return {"seed": run.seed, **_shorten(analysis)}
    return None


def _shorten(node: Any) -> Any:
    """Round numbers to six figures, to keep the page small."""
    if isinstance(node, dict):
        return {key: _shorten(value) for key, value in node.items()}
    if isinstance(node, list):
        return [_shorten(value) for value in node]
    return float(f"{node:.6g}") if isinstance(node, float) else node
