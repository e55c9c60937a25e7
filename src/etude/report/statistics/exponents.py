"""Exponents of a cost: least squares of its logarithm on the logarithms of the sizes."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.stats import t as student


@dataclass(frozen=True)
class Exponent:
    """An estimate, and half its 95 % interval; None if there are no more points than unknowns."""

    value: float
    half: float | None


def fit_exponents(sizes: Sequence[Mapping[str, float]], costs: Sequence[float]) -> dict[str, Exponent]:
    """Fit the exponents a, b in c n^a d^b to points with sizes, such as n and d, and a cost above 0.

    A size that does not vary has no exponent.
    """
    varied = [size for size in sizes[0] if len({point[size] for point in sizes}) > 1] if sizes else []
    if not varied:
        return {}
    logs = np.log(np.array([[point[size] for size in varied] for point in sizes], dtype=float))
    design, cost = np.column_stack([np.ones(len(logs)), logs]), np.log(np.array(costs, dtype=float))
    found, *_ = np.linalg.lstsq(design, cost, rcond=None)
    free = len(logs) - design.shape[1]
    if free <= 0:
        return {size: Exponent(float(value), None) for size, value in zip(varied, found[1:], strict=True)}
    variance = ((cost - design @ found) ** 2).sum() / free
    half = student.ppf(0.975, free) * np.sqrt(variance * np.diag(np.linalg.pinv(design.T @ design)))
    return {
        size: Exponent(float(value), float(by)) for size, value, by in zip(varied, found[1:], half[1:], strict=True)
    }
