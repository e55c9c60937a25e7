from itertools import product
from statistics import fmean, pstdev

import pytest
from hypothesis import given
from hypothesis import strategies as st

from etude.errors import UserError
from etude.report.statistics import Scores, expected_best

FEW = st.lists(st.integers(0, 6).map(float), min_size=1, max_size=4)


@given(FEW)
def test_it_is_the_best_of_every_n_trials_one_might_have_made(scores: list[float]) -> None:
    found = expected_best(Scores("search", scores))
    assert found.trials.tolist() == list(range(1, len(scores) + 1))
    for n, expected, deviation in zip(found.trials, found.expected, found.deviation, strict=True):
        best = [max(tried) for tried in product(scores, repeat=n)]
        assert expected == pytest.approx(fmean(best))
        assert deviation == pytest.approx(pstdev(best), abs=1e-9)


@given(FEW)
def test_of_losses_the_best_is_the_lowest(scores: list[float]) -> None:
    found = expected_best(Scores("search", scores), lower_is_better=True)
    assert found.expected[-1] == pytest.approx(fmean(map(min, product(scores, repeat=len(scores)))))


@given(st.lists(st.floats(0, 100), min_size=1, max_size=60))
def test_more_trials_never_find_less(scores: list[float]) -> None:
    expected = expected_best(Scores("search", scores)).expected
    assert expected[0] == pytest.approx(fmean(scores))
    assert (expected[1:] - expected[:-1] >= -1e-9).all()
    assert expected[-1] <= max(scores) + 1e-9


def test_a_trial_that_diverged_is_refused_and_the_search_is_named() -> None:
    with pytest.raises(UserError, match="rates has a run that scored nan"):
        expected_best(Scores("rates", [3.0, float("nan")]))
