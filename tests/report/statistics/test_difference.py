from collections.abc import Callable
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from etude.report.statistics import Scores, hedges_g, holm, paired_test, welch

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


STUDIES = st.dictionaries(st.sampled_from("ABCDEFG"), st.floats(0, 1), min_size=1)


@given(STUDIES)
def test_it_is_the_closed_test_of_bonferronis(p: dict[str, float]) -> None:
    """An arm is called at α when Bonferroni calls every set of arms it is in: Marcus, Peritz & Gabriel 1976."""
    expected = {
        arm: max(
            min(1.0, len(others) * min(p[name] for name in others))
            for size in range(1, len(p) + 1)
            for others in combinations(p, size)
            if arm in others
        )
        for arm in p
    }
    assert holm(p) == pytest.approx(expected)
    assert list(holm(p)) == list(p)


def test_an_example_by_hand() -> None:
    assert holm({"A": 0.04, "B": 0.01, "C": 0.03}) == pytest.approx({"A": 0.06, "B": 0.03, "C": 0.06})


def test_nothing_tested_is_nothing_adjusted() -> None:
    assert holm({}) == {}


@pytest.mark.parametrize("p", [float("nan"), -0.1, 1.1])
def test_what_is_no_probability_is_refused_and_the_arm_is_named(p: float) -> None:
    with pytest.raises(ValueError, match="the p of A2"):
        holm({"A1": 0.2, "A2": p})


@pytest.mark.slow
def test_twelve_arms_without_a_difference_rarely_show_one(at_most: Callable[[int, int, float], bool]) -> None:
    """Family-wise, on arms that share their base; uncorrected, a study in three or so shows one."""
    trials, corrected, uncorrected = 400, 0, 0
    for trial in range(trials):
        base, *arms = np.random.default_rng(trial).normal(25, 0.3, (13, 5)).tolist()
        found = {str(k): welch(Scores(str(k), arm), Scores("base", base)).p or 0.0 for k, arm in enumerate(arms)}
        corrected += min(holm(found).values()) < 0.05
        uncorrected += min(found.values()) < 0.05
    assert at_most(corrected, trials, 0.05)
    assert not at_most(uncorrected, trials, 0.05)


def test_differences_that_are_equal_but_for_rounding_show_no_spread() -> None:
    arm, base = Scores("greedy", [91.2, 88.4, 30.3]), Scores("base", [90.9, 88.1, 30.0])
    found = paired_test(arm, base)
    assert found.p is None
    assert found.why_not == "the training is that of base, and the difference from it the same at each seed"
    assert paired_test(Scores("greedy", [91.2, 88.4, 30.31]), base).p is not None
