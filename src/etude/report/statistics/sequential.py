"""Test after every seed, and stop once a comparison is decided, without more false alarms than one test makes.

Who looks after each seed and stops at the first p below 0.05 is wrong far more often than once in twenty times. Here
the error that is allowed is spent over the looks as O'Brien and Fleming (1979) do: next to none of it while most seeds
are missing, nearly all of it at the last look (Lan and DeMets 1983, "Discrete sequential boundaries for clinical
trials").
"""

from collections.abc import Sequence
from functools import cache
from math import sqrt

import numpy as np
from numpy.typing import NDArray
from scipy import integrate, optimize, special

Array = NDArray[np.float64]

_POINTS = 801  # at which the density of what goes on is known; with four times as many, levels move by less than 1e-6
_FAR = 9.0  # standard deviations, beyond which there is nothing


def nominal_levels(shares: Sequence[float], alpha: float, sides: int) -> list[float]:
    """Compute the level of each look, such that all looks together are wrong with the probability alpha.

    A test statistic is taken for normal, and for one that grows by independent steps from look to look: that of a mean
    over more and more seeds is, whose p by a t test is turned to a deviate.

    Args:
        shares: the seeds at each look, as shares of the most, ascending; the last is at most 1.
        alpha: how often a difference may be found that is none, at any of the looks.
        sides: 2 for a test of either sign; 1 for one of a single sign.

    Returns:
        For each look the p below which it decides.
    """
    return list(_levels(tuple(shares), alpha, sides))


@cache
def _levels(shares: tuple[float, ...], alpha: float, sides: int) -> tuple[float, ...]:
    spent, last, found = 0.0, 0.0, []
    at, density = np.zeros(1), np.ones(1)  # of Brownian motion at the last look, where it has not ended
    for share in shares:
        step, far = sqrt(share - last), _FAR * sqrt(share)
        by_now = 2 * float(special.ndtr(special.ndtri(alpha / sides / 2) / sqrt(share)))
        bound = _find_bound(at, density, step, far, by_now - spent)
        found.append(sides * float(special.ndtr(-bound / sqrt(share))))
        to = np.linspace(-bound if sides == 2 else -far, bound, _POINTS)
        steps = np.exp(-(((to[:, None] - at) / step) ** 2) / 2) / (step * sqrt(2 * np.pi))
        at, density = to, _total(at, density * steps)
        spent, last = by_now, share
    return tuple(found)


def _find_bound(at: Array, density: Array, step: float, far: float, target: float) -> float:
    """Find the bound that is crossed with a probability by the next step from where one is; `far` if by no more."""

    def excess(bound: float) -> float:
        return float(_total(at, density * special.ndtr((at - bound) / step))) - target

    return float(optimize.brentq(excess, 0.0, far)) if excess(far) < 0 else far


def _total(at: Array, density: Array) -> Array:
    """Integrate along the last axis; at the start, all of it is in one point."""
    return density[..., 0] if len(at) == 1 else integrate.simpson(density, x=at)
