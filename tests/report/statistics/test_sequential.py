"""Whoever looks after each seed is wrong no more often than somebody who looks once."""

import numpy as np
import pytest
from scipy import special

from etude.report.statistics import nominal_levels


def test_the_bounds_of_five_equal_looks_are_those_that_are_printed():
    """Lan and DeMets 1983 with the spending of O'Brien and Fleming, as tables of group sequential trials have them."""
    levels = nominal_levels([0.2, 0.4, 0.6, 0.8, 1], 0.05, sides=2)
    assert [-special.ndtri(level / 2) for level in levels] == pytest.approx(
        [4.8769, 3.3569, 2.6803, 2.2898, 2.0310], abs=2e-4
    )


@pytest.mark.parametrize("sides", [1, 2])
@pytest.mark.parametrize("alpha", [0.05, 0.2])
def test_all_looks_together_are_wrong_as_often_as_is_allowed(alpha, sides):
    """Walks of independent steps, 200,000 of them; four standard errors."""
    looks = np.arange(2, 9)
    steps = np.random.default_rng(sides).normal(size=(200_000, 8))
    deviates = steps.cumsum(axis=1)[:, looks - 1] / np.sqrt(looks)
    p = 2 * special.ndtr(-abs(deviates)) if sides == 2 else special.ndtr(-deviates)
    wrong = (p < nominal_levels([*(looks / 8)], alpha, sides)).any(axis=1).mean()
    assert wrong == pytest.approx(alpha, abs=4 * np.sqrt(alpha * (1 - alpha) / 200_000))


@pytest.mark.parametrize(("alpha", "most"), [(0.001, 3), (0.05, 5), (0.2, 10)])
def test_a_later_look_asks_for_less_and_the_last_for_hardly_more_than_one_alone(alpha, most):
    levels = nominal_levels([n / most for n in range(2, most + 1)], alpha, sides=2)
    assert levels == sorted(levels)
    assert alpha / 2 < levels[-1] < alpha


def test_a_single_look_has_the_whole_level():
    assert nominal_levels([1.0], 0.05, sides=2) == pytest.approx([0.05])
