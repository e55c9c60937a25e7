"""The numbers of a run that a search looks at: a validation's, and that of the result."""

import re
from collections.abc import Iterable, Mapping
from math import isfinite
from typing import Any

from etude.store.metrics_file import read_metrics, to_number
from etude.store.objective import numbers
from etude.store.run_dir import RunDir
from etude.study.study import number_at


def flat(name: str) -> str:
    """Return one form of the name of a metric: test_bleu for W&B's test/bleu and the result's test.bleu."""
    return re.sub("[./]", "_", name)


def is_in_curves(name: str, validated: Iterable[str]) -> bool:
    """Return whether a run reports a metric while it trains; `validated` are its `budget.val_metrics`."""
    known = "|".join(map(re.escape, ("loss", "perplexity", *validated)))
    return re.fullmatch(rf"loss|valid[./_]({known})", name) is not None


def read_curve(run: RunDir, name: str) -> dict[int, float]:
    """Read a metric after each validation so far: step -> value; empty if it is none that validations have."""
    rows = read_metrics(run.metrics_file)
    return {int(row["step"]): to_number(row[flat(name)]) for row in rows if row.get(flat(name))}


def read_value(run: RunDir, result: Mapping[str, Any], name: str) -> tuple[float | None, list[str]]:
    """Read a number of a finished run by its key in the result or at W&B; of a curve, the last.

    Returns:
        The number, None if there is none; and the names that there are.
    """
    keys = [*numbers(result)]
    if key := next((key for key in keys if flat(key) == flat(name)), ""):
        return number_at(result, key), keys
    curve = read_curve(run, name)
    columns = {column: None for row in read_metrics(run.metrics_file) for column in row}
    return curve[max(curve)] if curve else None, [*keys, *columns]


def best_of_curve(run: RunDir, name: str, end: float, *, maximize: bool) -> float:
    """Return the best of a metric's validations and of its value at the end."""
    curve = [end, *filter(isfinite, read_curve(run, name).values())]
    return max(curve) if maximize else min(curve)


def read_seconds(run: RunDir) -> float:
    """Read how many seconds a run has been trained so far, validation included."""
    if run.finished:
        return float(run.result().get("seconds", 0))
    return float(next((row["seconds"] for row in reversed(read_metrics(run.metrics_file)) if row.get("seconds")), 0))
