from collections.abc import Callable

import numpy as np
import pytest
from scipy import stats

from etude.report.statistics import power, seeds_needed


@pytest.mark.parametrize(("seeds", "difference"), [(2, 0.9), (3, 0.5), (10, -0.4)])
def test_it_is_how_often_a_simulated_test_sees_the_difference(
    seeds: int, difference: float, nominal: Callable[[int, int, float], bool]
) -> None:
    arm, base = np.random.default_rng(seeds).normal(0, 0.3, (2, 20_000, seeds))
    seen = (stats.ttest_ind(arm + difference, base, axis=1).pvalue < 0.05).sum()
    assert nominal(int(seen), 20_000, power(difference, 0.3, seeds))


def test_no_difference_is_seen_as_often_as_false_alarms_are_allowed() -> None:
    assert power(0, 0.3, 5, alpha=0.01) == pytest.approx(0.01)


def test_a_difference_of_one_deviation_takes_seventeen_seeds() -> None:
    """Cohen 1988, table 2.4.1: d = 1.00, two-sided α = 0.05, power 0.80."""
    assert seeds_needed(0.3, 0.3) == 17


@pytest.mark.parametrize("difference", [1e-3, 0.05, 0.3, 1.0, 30.0])
@pytest.mark.parametrize("wanted", [0.5, 0.8, 0.95])
def test_it_is_the_fewest_seeds_that_do(difference: float, wanted: float) -> None:
    seeds = seeds_needed(difference, 0.3, wanted)
    assert power(difference, 0.3, seeds) >= wanted
    assert seeds == 2 or power(difference, 0.3, seeds - 1) < wanted


@pytest.mark.parametrize(("difference", "wanted"), [(0.0, 0.8), (float("nan"), 0.8), (0.3, 1.0), (0.3, 0.0)])
def test_what_no_number_of_seeds_would_do_is_refused(difference: float, wanted: float) -> None:
    with pytest.raises(ValueError, match="no number of seeds"):
        seeds_needed(difference, 0.3, wanted)


@pytest.mark.parametrize(("deviation", "seeds"), [(0.0, 3), (float("nan"), 3), (0.3, 1)])
def test_power_without_a_spread_or_a_second_seed_is_refused(deviation: float, seeds: int) -> None:
    with pytest.raises(ValueError, match="power needs two seeds"):
        power(0.3, deviation, seeds)
