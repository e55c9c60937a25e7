"""Exponents that made the points come back, with the interval of a regression line."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import linregress
from scipy.stats import t as student

from etude.report.statistics.exponents import fit_exponents

POWER = st.floats(-3, 3)


@given(a=POWER, b=POWER, c=POWER, scale=st.floats(0.01, 100))
def test_a_fit_finds_the_exponents_that_made_the_points(a, b, c, scale):
    grid = [{"n": n, "d": d, "k": 3} for n in (2, 4, 8) for d in (3, 9)]
    sizes = [*grid, *({"n": 8, "d": 9, "k": k} for k in (5, 9, 17))]  # a cross, as layers are measured
    found = fit_exponents(sizes, [scale * s["n"] ** a * s["d"] ** b * s["k"] ** c for s in sizes])
    assert [found[size].value for size in "ndk"] == pytest.approx([a, b, c], abs=1e-9)
    assert [found[size].half for size in "ndk"] == pytest.approx([0, 0, 0], abs=1e-9)


def test_of_one_size_the_interval_is_that_of_a_regression_line():
    ns, noise = (1, 2, 4, 8, 16, 32), np.random.default_rng(1).normal(size=6)
    costs = [math.exp(math.log(n) + e) for n, e in zip(ns, noise, strict=True)]
    line = linregress(np.log(ns), np.log(costs))
    found = fit_exponents([{"n": n, "d": 4} for n in ns], costs)
    assert found.keys() == {"n"}
    assert (found["n"].value, found["n"].half) == pytest.approx((line.slope, student.ppf(0.975, 4) * line.stderr))


def test_the_interval_holds_the_exponents_of_noisy_points_as_often_as_it_says():
    rng, sizes = np.random.default_rng(2), [{"n": n, "d": d} for n in (1, 2, 4, 8) for d in (1, 3, 9)]
    held = []
    for _ in range(400):
        costs = [s["n"] ** 2 * s["d"] * math.exp(0.3 * rng.normal()) for s in sizes]
        found = fit_exponents(sizes, costs)
        held.append(abs(found["n"].value - 2) <= found["n"].half)
    assert 0.92 < np.mean(held) < 0.98


def test_with_as_many_points_as_unknowns_there_is_no_interval():
    assert fit_exponents([{"n": 2, "d": 4}, {"n": 4, "d": 4}], [1.0, 2.0])["n"].half is None
    assert fit_exponents([{"n": 2, "d": 4}], [1.0]) == {}
    assert fit_exponents([], []) == {}
