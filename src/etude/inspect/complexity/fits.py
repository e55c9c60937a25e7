"""Exponents: least squares of the logarithm of a cost on those of n and d."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.stats import t as student


@dataclass(frozen=True)
class Exponent:
    """An estimate and its 95 % interval, which is missing where there are no more points than unknowns."""

    value: float
    low: float | None
    high: float | None


def fit_exponents(points: Sequence[tuple[int, int, float]]) -> dict[str, Exponent]:
    """The exponents of n and d in c n^a d^b, for points (n, d, cost); of what does not vary there is none."""
    logs = np.log(np.array(points, dtype=float).reshape(-1, 3))
    varied = [column for column in (0, 1) if len(set(logs[:, column])) > 1]
    design = np.column_stack([np.ones(len(logs)), logs[:, varied]])
    found, *_ = np.linalg.lstsq(design, logs[:, 2], rcond=None)
    free = len(logs) - design.shape[1]
    half = np.full(len(found), np.nan)
    if free > 0:
        variance = ((logs[:, 2] - design @ found) ** 2).sum() / free
        half = student.ppf(0.975, free) * np.sqrt(variance * np.diag(np.linalg.inv(design.T @ design)))
    return {"nd"[column]: _exponent(found[i], half[i]) for i, column in enumerate(varied, start=1)}


def _exponent(value: float, half: float) -> Exponent:
    bounds = (None, None) if np.isnan(half) else (float(value - half), float(value + half))
    return Exponent(float(value), *bounds)
