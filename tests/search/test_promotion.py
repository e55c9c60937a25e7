from math import inf, nan
from random import Random
from statistics import fmean

import pytest
from hypothesis import given
from hypothesis import strategies as st

from etude.search.promotion import Climber, expected_share, out_of_reach, promote, promote_last


def climber(number: int, *values: float, ended: bool = False) -> Climber:
    return Climber(number, values, max(0, len(values) - 1), ended)


def simulate(scores: list[tuple[float, ...]], eta: int, freed: set[int] | None = None) -> list[Climber]:
    """Train trials one at a time by the rule of a search: promote where that is possible, else begin the next."""
    climbers: list[Climber] = []
    top = len(scores[0]) - 1
    begun = 0
    while True:
        lost = out_of_reach(climbers, eta, len(scores))
        if freed is not None:
            freed |= {one.number for one in lost}
        if chosen := promote(climbers, eta):
            assert freed is None or chosen.number not in freed
            to = chosen.to + 1
            values = scores[chosen.number][: to + 1]
            climbers[chosen.number] = Climber(chosen.number, values, to, ended=to == top)
        elif begun < len(scores):
            climbers.append(Climber(begun, scores[begun][:1], 0))
            begun += 1
        else:
            return climbers


values = st.floats(0, 9).map(lambda x: round(x, 1))
searches = st.integers(2, 4).flatmap(lambda rungs: st.lists(st.tuples(*[values] * rungs), min_size=1, max_size=40))


@given(searches, st.integers(2, 4))
def test_at_each_rung_at_least_the_best_one_in_eta_has_been_promoted(scores: list[tuple[float, ...]], eta: int) -> None:
    climbers = simulate(scores, eta)
    for rung in range(len(scores[0]) - 1):
        there = sorted((one.values[rung], one.number) for one in climbers if len(one.values) > rung)
        best = {number for _, number in there[: len(there) // eta]}
        assert best <= {one.number for one in climbers if len(one.values) > rung + 1}


@given(searches, st.integers(2, 4))
def test_what_is_out_of_reach_is_never_promoted(scores: list[tuple[float, ...]], eta: int) -> None:
    simulate(scores, eta, freed=set())


@given(searches)
def test_a_trial_is_never_trained_beyond_a_rung_where_it_was_not_promoted(scores: list[tuple[float, ...]]) -> None:
    for one in simulate(scores, 3):
        assert len(one.values) == one.to + 1


def test_the_highest_rung_comes_first() -> None:
    low, high = [climber(n, float(n)) for n in range(3)], [climber(n, 1.0, float(n)) for n in (3, 4, 5)]
    assert promote([*low, *high], 3) == high[0]


@pytest.mark.parametrize("diverged", [nan, inf])
def test_a_trial_that_diverged_counts_and_is_not_promoted(diverged: float) -> None:
    assert promote([climber(0, diverged), climber(1, 2.0), climber(2, 3.0)], 3) == climber(1, 2.0)


def test_one_trial_comes_to_the_top_even_of_fewer_than_eta() -> None:
    two = [climber(0, 2.0), climber(1, 1.0)]
    assert promote(two, 3) is None
    assert promote_last(two, 2) == two[1]
    assert promote_last([two[0], climber(1, 1.0, 1.0)], 2) == climber(1, 1.0, 1.0)
    assert promote_last([two[0], climber(1, 1.0, 1.0, 1.0, ended=True)], 2) is None


@pytest.mark.parametrize(
    ("n_trials", "rungs", "eta"),
    [
        (20, (1 / 9, 1 / 3, 1.0), 3),
        (60, (1 / 9, 1 / 3, 1.0), 3),
        (60, (0.15, 0.4, 1.0), 3),
        (48, (1 / 8, 1 / 4, 1 / 2, 1.0), 2),
        (60, (0.25, 1.0), 4),
    ],
)
def test_the_expected_share_of_the_steps_is_that_of_simulated_searches(
    n_trials: int, rungs: tuple[float, ...], eta: int
) -> None:
    random = Random(1)
    shares = []
    for _ in range(20):
        trials = [(random.random(),) * len(rungs) for _ in range(n_trials)]
        shares.append(fmean(rungs[len(one.values) - 1] for one in simulate(trials, eta)))
    assert expected_share(rungs, eta, n_trials) == pytest.approx(fmean(shares), rel=0.1)


def test_of_one_trial_all_steps_are_expected() -> None:
    assert expected_share((1 / 9, 1 / 3, 1.0), 3, 1) == pytest.approx(1.0)
