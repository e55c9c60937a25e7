import math
from collections.abc import Callable

import numpy as np
import pytest

from etude.errors import UserError
from etude.report.statistics import Scores, mean_interval


@pytest.mark.parametrize("seeds", [2, 3, 10])
@pytest.mark.parametrize("level", [0.8, 0.95])
def test_the_interval_holds_the_truth_as_often_as_it_says(
    seeds: int, level: float, nominal: Callable[..., bool]
) -> None:
    held = 0
    for scores in np.random.default_rng(seeds).normal(25.8, 0.3, (1000, seeds)).tolist():
        interval = mean_interval(Scores("base", scores), level).interval
        assert interval
        held += interval.low <= 25.8 <= interval.high
    assert nominal(held, 1000, level)


def test_three_seeds_reach_4_3_standard_errors_to_either_side() -> None:
    found = mean_interval(Scores("base", [24.0, 25.0, 26.0]))
    assert found.value == 25
    assert found.interval == pytest.approx((25 - 4.302653 / math.sqrt(3), 25 + 4.302653 / math.sqrt(3)))
    assert not found.why_not


def test_one_seed_has_a_mean_and_no_interval_and_says_why() -> None:
    found = mean_interval(Scores("A1", [24.0]))
    assert (found.value, found.interval) == (24, None)
    assert "A1 has one seed" in found.why_not


def test_the_spread_of_enormous_perplexities_is_known_though_its_square_is_no_float() -> None:
    found = mean_interval(Scores("A1", [1e160, 2e160, 3e160]))
    assert found.interval == pytest.approx(
        ((2 - 4.302653 / math.sqrt(3)) * 1e160, (2 + 4.302653 / math.sqrt(3)) * 1e160)
    )


def test_seeds_that_agree_to_the_last_digit_do_not_make_a_certainty() -> None:
    found = mean_interval(Scores("A1", [0.0, 0.0, 0.0]))
    assert found.interval is None
    assert "3 seeds of A1 scored the same" in found.why_not


@pytest.mark.parametrize("score", [math.nan, math.inf, -math.inf])
def test_what_is_no_finite_number_is_refused_and_the_arm_is_named(score: float) -> None:
    with pytest.raises(UserError, match=f"A1 .*{score}"):
        Scores("A1", [24.0, score])


def test_an_arm_without_scores_is_refused_and_named() -> None:
    with pytest.raises(UserError, match="A1 has no scores"):
        Scores("A1", [])
