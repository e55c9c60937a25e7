"""The line through points, and whether its intervals hold the truth as often as they say."""

from collections.abc import Callable

import numpy as np
import pytest
from scipy import stats

from etude.report.statistics import fit_line


def named(values: np.ndarray) -> dict[str, float]:
    return {str(k): float(value) for k, value in enumerate(values)}


def test_it_is_scipys_line_and_correlation() -> None:
    random = np.random.default_rng(1)
    x, y = random.normal(size=(2, 19))
    line, expected, r = fit_line(named(x), named(y)), stats.linregress(x, y), stats.pearsonr(x, y)
    assert (line.r, line.slope) == (pytest.approx(r.statistic), pytest.approx(expected.slope))
    assert line.r_interval == pytest.approx(tuple(r.confidence_interval(0.95)))


def test_only_names_that_both_have_count() -> None:
    x = {"a": 0.0, "b": 1.0, "c": 2.0, "d": 3.0, "e": 9.0}
    y = {"a": 0.0, "b": 2.0, "c": 4.0, "d": 6.0, "z": 1.0}
    line = fit_line(x, y)
    assert (line.points, line.r, line.slope, line.r_interval) == (4, pytest.approx(1), pytest.approx(2), None)


@pytest.mark.parametrize("y", [{"a": 1.0}, {"a": 1.0, "b": 1.0, "c": 1.0, "d": 1.0}])
def test_too_few_points_or_points_of_one_value_have_no_line(y: dict[str, float]) -> None:
    line = fit_line({"a": 0.0, "b": 1.0, "c": 2.0, "d": 3.0}, y)
    assert (line.r, line.slope, line.r_interval, line.slope_interval) == (None,) * 4
    assert line.why_not


@pytest.mark.slow
def test_the_intervals_hold_the_truth(nominal: Callable[[int, int, float], bool]) -> None:
    studies, held_r, held_slope = 500, 0, 0
    for trial in range(studies):
        random = np.random.default_rng(trial)
        x = random.normal(size=19)
        y = 0.8 * x + 0.6 * random.normal(size=19)
        line = fit_line(named(x), named(y))
        assert line.r_interval
        assert line.slope_interval
        held_r += line.r_interval.low <= 0.8 <= line.r_interval.high
        held_slope += line.slope_interval.low <= 0.8 <= line.slope_interval.high
    assert nominal(held_r, studies, 0.95)
    assert nominal(held_slope, studies, 0.95)
