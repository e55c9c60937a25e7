"""What twice the trials would change, against brute force and simulation."""

from itertools import combinations
from math import inf

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from etude.report.statistics import Scores, best_of_twice, other_order_in_half

LOSSES = st.lists(st.sampled_from([1.0, 2.0, 3.0, 4.0, inf]), min_size=2, max_size=7)


@given(st.data())
def test_every_half_of_the_trials_is_counted(data: st.DataObject) -> None:
    first = data.draw(LOSSES)
    second = data.draw(st.lists(st.sampled_from([1.0, 2.0, 3.0, inf]), min_size=len(first), max_size=len(first)))
    halves = [*combinations(range(len(first)), len(first) // 2)]
    best = [(min(first[i] for i in half), min(second[i] for i in half)) for half in halves]
    known = [(a, b) for a, b in best if inf not in (a, b)]
    now = np.sign(min(first) - min(second)) if inf not in (min(first), min(second)) else 0
    expected = np.mean([np.sign(a - b) != now for a, b in known]) if known else None
    assert other_order_in_half(first, second) == (None if expected is None else pytest.approx(expected))


@pytest.mark.parametrize("power", [1.0, 2.0, 4.0], ids=["uniform", "triangle", "thin"])
@pytest.mark.parametrize("sign", [1, -1], ids=["lower", "higher"])
def test_the_best_of_twice_the_trials_is_right_in_the_mean(power: float, sign: int) -> None:
    """Of 2,000 simulated searches of 32 trials; the true best of 64 of F(x) = x^d has the mean of a beta quantile."""
    draws = sign * np.random.default_rng(1).random((2000, 64)) ** (1 / power)
    told = [best_of_twice(Scores("a", row[:32].tolist()), lower_is_better=sign > 0) for row in draws]
    best = (draws * sign).min(axis=1) * sign
    once = (draws[:, :32] * sign).min(axis=1) * sign
    gain = np.mean(once) - np.mean(best)
    assert np.mean(once) - np.mean(told) == pytest.approx(gain, rel=0.35)


def test_it_takes_four_trials() -> None:
    with pytest.raises(ValueError, match="it takes 4 trials, not 3"):
        best_of_twice(Scores("a", [1.0, 2.0, 3.0]))
