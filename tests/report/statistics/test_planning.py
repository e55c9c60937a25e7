from collections.abc import Callable
from itertools import combinations, product
from statistics import fmean, pstdev

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from etude.errors import UserError
from etude.report.statistics import Scores, expected_best, power, seeds_needed


@pytest.mark.parametrize(("seeds", "difference"), [(2, 0.9), (3, 0.5), (10, -0.4)])
def test_it_is_how_often_a_simulated_test_sees_the_difference(
    seeds: int, difference: float, nominal: Callable[[int, int, float], bool]
) -> None:
    arm, base = np.random.default_rng(seeds).normal(0, 0.3, (2, 20_000, seeds))
    seen = (stats.ttest_ind(arm + difference, base, axis=1).pvalue < 0.05).sum()
    assert nominal(int(seen), 20_000, power(difference, 0.3, seeds))


@pytest.mark.parametrize(
    ("seeds", "difference", "test_set"), [(3, 1.0, 0.2), (5, 1.0, 0.3), (20, 1.0, 0.3), (20, 0.6, 0.3)]
)
def test_with_a_test_set_it_is_how_often_a_simulated_test_over_seeds_and_sentences_sees_it(
    seeds: int, difference: float, test_set: float
) -> None:
    """The variance over seeds is estimated from them, that over test sets is known, as resampling makes it."""
    chance, times = np.random.default_rng(seeds), 20_000
    arm, base = chance.normal(0, 0.4, (2, times, seeds))
    found = difference + chance.normal(0, test_set, times) + arm.mean(axis=1) - base.mean(axis=1)
    parts = [side.var(axis=1, ddof=1) / seeds for side in (arm, base)]
    variance = parts[0] + parts[1] + test_set**2
    freedom = variance**2 / ((parts[0] ** 2 + parts[1] ** 2) / (seeds - 1))
    seen = (2 * stats.t.sf(abs(found) / np.sqrt(variance), freedom) < 0.05).mean()
    assert power(difference, 0.4, seeds, test_set=test_set) == pytest.approx(seen, abs=0.05)


def test_no_difference_is_seen_as_often_as_false_alarms_are_allowed() -> None:
    assert power(0, 0.3, 5, alpha=0.01) == pytest.approx(0.01)


def test_a_difference_of_one_deviation_takes_seventeen_seeds() -> None:
    """Cohen 1988, table 2.4.1: d = 1.00, two-sided α = 0.05, power 0.80."""
    assert seeds_needed(0.3, 0.3) == 17


def test_it_is_the_fewest_seeds_that_do() -> None:
    """Also of large differences among many arms."""
    alone = product([1e-3, 0.05, 0.3, 1.0, 30.0], [0.3], [0.5, 0.8, 0.95], [1])
    large = product([1.5, 2.19, 3.0, 7.3, 20.0], [1.0], [0.8], [1, 6, 30])
    for difference, deviation, wanted, arms in (*alone, *large):
        alpha = 0.05 / arms
        seeds = seeds_needed(difference, deviation, wanted, alpha=alpha)
        assert seeds is not None
        assert power(difference, deviation, seeds, alpha) >= wanted, (difference, wanted, arms)
        assert seeds == 2 or power(difference, deviation, seeds - 1, alpha) < wanted, (difference, wanted, arms)


def test_what_hides_in_the_test_set_no_number_of_seeds_shows() -> None:
    """On endless seeds a z test is left: 2.80 standard deviations show with power 0.8."""
    assert seeds_needed(2.75, 1.0, test_set=1.0) is None
    assert seeds_needed(2.85, 1.0, test_set=1.0) is not None


@pytest.mark.parametrize(("difference", "wanted"), [(0.0, 0.8), (float("nan"), 0.8), (0.3, 1.0), (0.3, 0.0)])
def test_what_no_number_of_seeds_would_do_is_refused(difference: float, wanted: float) -> None:
    with pytest.raises(ValueError, match="no number of seeds"):
        seeds_needed(difference, 0.3, wanted)


@pytest.mark.parametrize(("deviation", "seeds"), [(0.0, 3), (float("nan"), 3), (0.3, 1)])
def test_power_without_a_spread_or_a_second_seed_is_refused(deviation: float, seeds: int) -> None:
    with pytest.raises(ValueError, match="power needs two seeds"):
        power(0.3, deviation, seeds)


FEW = st.lists(st.integers(0, 6).map(float), min_size=1, max_size=6)


@given(FEW)
def test_it_is_the_best_of_every_n_of_the_trials(scores: list[float]) -> None:
    found = expected_best(Scores("search", scores))
    assert found.trials.tolist() == list(range(1, len(scores) + 1))
    for n, expected, deviation in zip(found.trials, found.expected, found.deviation, strict=True):
        best = [max(chosen) for chosen in combinations(scores, n)]
        assert expected == pytest.approx(fmean(best))
        assert deviation == pytest.approx(pstdev(best), abs=1e-9)


@given(FEW)
def test_of_losses_the_best_is_the_lowest(scores: list[float]) -> None:
    found = expected_best(Scores("search", scores), lower_is_better=True)
    assert found.expected == pytest.approx([fmean(map(min, combinations(scores, n))) for n in found.trials])


@given(st.lists(st.floats(0, 100), min_size=1, max_size=60))
def test_more_trials_never_find_less(scores: list[float]) -> None:
    expected = expected_best(Scores("search", scores)).expected
    assert expected[0] == pytest.approx(fmean(scores))
    assert (expected[1:] - expected[:-1] >= -1e-9).all()
    assert expected[-1] == pytest.approx(max(scores))


def test_on_average_over_searches_it_is_the_expected_best_of_the_distribution() -> None:
    searches = np.random.default_rng(1).uniform(0, 1, (4000, 10))
    found = np.mean([expected_best(Scores("search", row.tolist())).expected for row in searches], axis=0)
    assert found == pytest.approx([n / (n + 1) for n in range(1, 11)], abs=0.01)  # of uniform scores


def test_a_trial_that_diverged_is_refused_and_the_search_is_named() -> None:
    with pytest.raises(UserError, match="rates has a run that scored nan"):
        expected_best(Scores("rates", [3.0, float("nan")]))
