from collections.abc import Callable
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from etude.report.statistics import Scores, holm, welch

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
