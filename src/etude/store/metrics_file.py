"""Read `metrics.csv`, which a run appends to while others read it and may leave torn if it is killed."""

import csv
from math import nan
from pathlib import Path


def read_metrics(path: Path) -> list[dict[str, str]]:
    """Read the whole rows of a metrics file; empty if there is no file.

    A last line without its end is left out, as its last number may lack digits. So are rows without a step or with
    fewer cells than the header.
    """
    if not path.is_file():
        return []
    whole, _, _ = path.read_text(encoding="utf-8", errors="replace").rpartition("\n")
    rows = csv.DictReader(whole.split("\n"))
    return [row for row in rows if None not in row.values() and row.get("step", "").isdigit()]


def to_number(text: str | None) -> float:
    """Return the number that is written; NaN if it is none."""
    try:
        return float(text or nan)
    except ValueError:
        return nan
