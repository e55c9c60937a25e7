from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from etude.report.statistics import Scores, hedges_g, welch

Check = Callable[[int, int, float], bool]
TRIALS = 1500


def false_alarms(arm: np.ndarray, base: np.ndarray) -> int:
    """How many of the rows, drawn without a difference, are called different at 0.05."""
    found = [welch(Scores("arm", a), Scores("base", b)) for a, b in zip(arm.tolist(), base.tolist(), strict=True)]
    return sum(comparison.p < 0.05 for comparison in found if comparison.p is not None)


@given(
    st.lists(st.floats(-50, 50).map(lambda score: round(score, 3)), min_size=2, max_size=6, unique=True),
    st.lists(st.floats(-50, 50).map(lambda score: round(score, 3)), min_size=2, max_size=6, unique=True),
)
def test_it_is_the_test_that_scipy_calls_welch(arm: list[float], base: list[float]) -> None:
    found, expected = welch(Scores("arm", arm), Scores("base", base)), stats.ttest_ind(arm, base, equal_var=False)
    assert found.p == pytest.approx(expected.pvalue, rel=1e-6, abs=1e-12)
    assert found.interval == pytest.approx(tuple(expected.confidence_interval(0.95)), rel=1e-6, abs=1e-9)


@pytest.mark.parametrize("seeds", [2, 3])
def test_few_seeds_raise_no_more_false_alarms_than_allowed(seeds: int, at_most: Check) -> None:
    arm, base = np.random.default_rng(seeds).normal(25, 0.3, (2, TRIALS, seeds))
    assert at_most(false_alarms(arm, base), TRIALS, 0.05)


def test_ten_seeds_raise_as_many_false_alarms_as_allowed_though_the_arms_vary_differently(nominal: Check) -> None:
    random = np.random.default_rng(0)
    arm, base = random.normal(25, 1.0, (TRIALS, 10)), random.normal(25, 0.2, (TRIALS, 10))
    assert nominal(false_alarms(arm, base), TRIALS, 0.05)


def test_shared_seeds_that_go_together_make_it_only_more_careful(at_most: Check) -> None:
    random = np.random.default_rng(1)
    shared, (arm, base) = random.normal(25, 0.3, (TRIALS, 5)), random.normal(0, 0.3, (2, TRIALS, 5))
    assert at_most(false_alarms(shared + arm, shared + base), TRIALS, 0.05)


def test_the_interval_holds_a_true_difference_as_often_as_it_says(nominal: Check) -> None:
    arm, base = np.random.default_rng(2).normal(25, 0.3, (2, TRIALS, 10))
    held = 0
    for a, b in zip((arm - 0.7).tolist(), base.tolist(), strict=True):
        interval = welch(Scores("arm", a), Scores("base", b)).interval
        assert interval
        held += interval.low <= -0.7 <= interval.high
    assert nominal(held, TRIALS, 0.95)


def test_hedges_g_is_right_on_average_with_three_seeds() -> None:
    arm, base = np.random.default_rng(3).normal(0, 0.3, (2, 4000, 3))
    found = [hedges_g(Scores("a", a), Scores("b", b)) for a, b in zip((arm + 0.3).tolist(), base.tolist(), strict=True)]
    effects = np.array(found, dtype=float)
    assert abs(effects.mean() - 1) < 3.3 * effects.std() / np.sqrt(len(effects))
    assert effects.mean() / 0.7979 - 1 > 3.3 * effects.std() / np.sqrt(len(effects))  # uncorrected, it is not


def test_hedges_g_of_an_example_by_hand() -> None:
    found = hedges_g(Scores("arm", [3.0, 4.0, 5.0]), Scores("base", [1.0, 2.0, 3.0]))
    assert found == pytest.approx(2 * 0.797885, rel=1e-6)  # a pooled deviation of 1, J(4) = sqrt(2 / π)


@pytest.mark.parametrize(
    ("arm", "base", "why"),
    [
        ([24.0], [25.0, 26.0], "A1 has one seed"),
        ([24.0, 25.0], [25.0], "base has one seed"),
        ([24.0, 24.0], [25.0, 25.0], "2 seeds of base scored the same"),
    ],
)
def test_without_a_spread_there_is_a_difference_and_no_test_and_it_says_why(
    arm: list[float], base: list[float], why: str
) -> None:
    found = welch(Scores("A1", arm), Scores("base", base))
    assert found.difference == np.mean(arm) - np.mean(base)
    assert (found.p, found.interval) == (None, None)
    assert why in found.why_not
    assert hedges_g(Scores("A1", arm), Scores("base", base)) is None


def test_one_arm_may_be_without_spread() -> None:
    found = welch(Scores("untrained", [0.0, 0.0, 0.0]), Scores("base", [25.0, 25.5, 24.5]))
    assert found.p == pytest.approx(stats.ttest_1samp([25.0, 25.5, 24.5], 0).pvalue)
