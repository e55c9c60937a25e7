"""Rank correlations, and the line through points: whether their intervals hold the truth as often as they say."""

import math
from collections.abc import Callable
from itertools import combinations

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from scipy import stats

from etude.errors import UserError
from etude.report.statistics import RankCorrelation, fit_line, kendall, spearman

Column = dict[str, float | None]
Correlate = Callable[..., RankCorrelation]
BOTH = pytest.mark.parametrize("correlate", [spearman, kendall])
PAIRS = st.lists(st.tuples(st.integers(0, 5), st.integers(0, 5)), min_size=5, max_size=12)


def columns(pairs: list[tuple[int, int]]) -> tuple[Column, Column]:
    assume(len({a for a, _ in pairs}) > 1 and len({b for _, b in pairs}) > 1)
    return {f"A{k}": float(a) for k, (a, _) in enumerate(pairs)}, {f"A{k}": float(b) for k, (_, b) in enumerate(pairs)}


@given(PAIRS)
def test_spearman_is_the_correlation_of_ranks_that_ties_share(pairs: list[tuple[int, int]]) -> None:
    def ranks(values: list[int]) -> list[float]:
        return [sum(other < v for other in values) + (values.count(v) + 1) / 2 for v in values]

    ours, paper = columns(pairs)
    expected = np.corrcoef(ranks([a for a, _ in pairs]), ranks([b for _, b in pairs]))[0, 1]
    assert spearman(ours, paper).value == pytest.approx(expected, abs=1e-12)


@given(PAIRS)
def test_kendall_counts_pairs_in_the_same_order_less_those_in_the_other(pairs: list[tuple[int, int]]) -> None:
    ours, paper = columns(pairs)
    signs = [(np.sign(a - c), np.sign(b - d)) for (a, b), (c, d) in combinations(pairs, 2)]
    untied = math.prod(sum(sign[side] != 0 for sign in signs) for side in (0, 1))
    expected = sum(left * right for left, right in signs) / math.sqrt(untied)
    assert kendall(ours, paper).value == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize(
    ("correlate", "truth"), [(spearman, 6 / math.pi * math.asin(0.3)), (kendall, 2 / math.pi * math.asin(0.6))]
)
def test_the_interval_holds_the_truth_between_94_and_97_times_in_a_hundred(
    correlate: Correlate, truth: float, at_most: Callable[[int, int, float], bool]
) -> None:
    """Twenty arms of a bivariate normal with correlation 0.6, whose rank correlations are known (Kruskal 1958)."""
    trials, held = 1000, 0
    drawn = np.random.default_rng(0).multivariate_normal([0, 0], [[1, 0.6], [0.6, 1]], (trials, 20))
    for arms in drawn.tolist():
        found = correlate({str(k): a for k, (a, _) in enumerate(arms)}, {str(k): b for k, (_, b) in enumerate(arms)})
        held += bool(found.interval and found.interval.low <= truth <= found.interval.high)
    assert at_most(trials - held, trials, 0.06)
    assert at_most(held, trials, 0.97)


@BOTH
def test_empty_cells_leave_their_arm_out(correlate: Correlate) -> None:
    ours: Column = {"A": 1.0, "B": 3.0, "C": 2.0, "D": 5.0, "E": 4.0, "ours only": 0.0, "not run": None}
    paper: Column = {"E": 4.5, "D": 4.0, "C": 3.0, "B": 2.0, "A": 1.0, "theirs only": 9.0, "not run": 7.0}
    found = correlate(ours, paper)
    assert found.arms == 5
    assert found == correlate({arm: ours[arm] for arm in "ABCDE"}, {arm: paper[arm] for arm in "ABCDE"})
    assert found.interval
    assert found.interval.low < (found.value or 0) < found.interval.high


@BOTH
@pytest.mark.parametrize("sign", [1, -1])
def test_the_very_order_has_a_value_and_no_interval(correlate: Correlate, sign: int) -> None:
    found = correlate({str(k): sign * 1.0 * k for k in range(9)}, {str(k): float(k * k) for k in range(9)})
    assert found.value == pytest.approx(sign)
    assert found.interval is None
    assert "no interval" in found.why_not


@BOTH
def test_too_few_arms_have_no_correlation_and_it_says_how_many_there_are(correlate: Correlate) -> None:
    found = correlate({"A": 1.0, "B": 2.0, "C": 3.0}, {"A": 2.0, "B": 1.0, "C": 3.0})
    assert (found.value, found.interval, found.arms) == (None, None, 3)
    assert "3 arms have" in found.why_not
    assert "1 arm has" in correlate({"A": 1.0}, {"A": 2.0}).why_not


@BOTH
def test_a_column_without_an_order_has_no_correlation(correlate: Correlate) -> None:
    found = correlate(dict.fromkeys("ABCDEF", 1.0), {arm: float(ord(arm)) for arm in "ABCDEF"})
    assert (found.value, found.interval) == (None, None)
    assert "no order" in found.why_not


@BOTH
@pytest.mark.parametrize("side", [0, 1])
def test_what_is_no_finite_number_is_refused_and_the_arm_is_named(correlate: Correlate, side: int) -> None:
    both = [{arm: float(ord(arm)) for arm in "ABCDEF"} for _ in range(2)]
    both[side]["C"] = math.nan
    with pytest.raises(UserError, match="C has"):
        correlate(*both)


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
