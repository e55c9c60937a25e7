"""Random search draws what W&B's distributions say."""

import math
import re
from collections import Counter
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from etude.errors import UserError
from etude.search.distributions import draw, share

SHARES = [(k + 0.5) / 2000 for k in range(2000)]

numbers = st.floats(-1e6, 1e6)
shares = st.floats(0, 1, exclude_min=True, exclude_max=True)


def drawn(parameter: dict[str, Any]) -> list[Any]:
    return [draw(parameter, at, "FILE: parameters.x") for at in SHARES]


def test_shares_are_uniform_and_each_seed_draw_and_key_has_its_own():
    many = [share(seed, number, key) for seed in range(10) for number in range(100) for key in ("a", "b", "c.d")]
    assert len(set(many)) == len(many)
    assert all(0 < one < 1 for one in many)
    for tenth, count in Counter(math.floor(10 * one) for one in many).items():
        assert abs(count - 300) < 5 * math.sqrt(300), tenth  # five standard deviations
    assert share(1, 7, "a") == share(1, 7, "a")


@given(numbers, numbers, shares)
def test_uniform_values_lie_between_their_bounds(a, b, at):
    low, high = sorted((a, b))
    value = draw({"min": low, "max": high}, at, "x")
    assert low <= value <= high or math.isclose(value, high)
    assert draw({"distribution": "uniform", "min": low, "max": high}, at, "x") == value


@given(st.integers(-50, 50), st.integers(0, 5))
def test_whole_bounds_give_each_whole_number_as_often(low, more):
    counted = Counter(drawn({"min": low, "max": low + more}))
    assert sorted(counted) == list(range(low, low + more + 1))
    assert max(counted.values()) - min(counted.values()) <= 1


@pytest.mark.parametrize(
    ("parameter", "straight", "low", "high"),
    [  # each is uniform, once made straight, between low and high
        ({"distribution": "log_uniform", "min": -2, "max": 3}, math.log, -2, 3),
        ({"distribution": "log_uniform_values", "min": 0.01, "max": 10}, math.log10, -2, 1),
        ({"distribution": "inv_log_uniform", "min": 1, "max": 4}, lambda x: math.log(1 / x), 1, 4),
        ({"distribution": "inv_log_uniform_values", "min": 0.1, "max": 100}, lambda x: math.log10(1 / x), -2, 1),
        ({"distribution": "uniform", "min": 3, "max": 5}, float, 3, 5),
    ],
)
def test_logarithms_are_spread_evenly(parameter, straight, low, high):
    values = sorted(straight(value) for value in drawn(parameter))
    expected = [low + at * (high - low) for at in SHARES]
    assert values == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize(
    ("parameter", "straight", "mean", "deviation"),
    [
        ({"distribution": "normal"}, float, 0, 1),
        ({"mu": 3, "sigma": 0.5}, float, 3, 0.5),
        ({"distribution": "log_normal", "mu": -1, "sigma": 2}, math.log, -1, 2),
    ],
)
def test_normal_values_have_their_mean_and_their_deviation(parameter, straight, mean, deviation):
    values = [straight(value) for value in drawn(parameter)]
    assert sum(values) / len(values) == pytest.approx(mean, abs=1e-6)
    assert math.sqrt(sum((value - mean) ** 2 for value in values) / len(values)) == pytest.approx(deviation, rel=0.01)
    within = sum(abs(value - mean) < deviation for value in values) / len(values)
    assert within == pytest.approx(0.6827, abs=0.001)


@given(st.sampled_from([1, 8, 0.1, 0.25]), shares)
def test_a_rounded_value_is_a_multiple_and_whole_where_its_step_is(q, at):
    plain = draw({"distribution": "log_uniform_values", "min": 1, "max": 500}, at, "x")
    value = draw({"distribution": "q_log_uniform_values", "min": 1, "max": 500, "q": q}, at, "x")
    assert abs(value - plain) <= q / 2 + 1e-9
    assert value / q == pytest.approx(round(value / q), abs=1e-9)
    assert isinstance(value, int) == isinstance(q, int)
    assert len(repr(value)) < 8  # 0.3, not 0.30000000000000004


def test_values_come_as_often_as_their_probabilities_say():
    assert Counter(drawn({"values": ["a", "b", None, True]})) == {"a": 500, "b": 500, None: 500, True: 500}
    counted = Counter(drawn({"values": ["a", "b", "c"], "probabilities": [0.2, 0, 0.8]}))
    assert counted == {"a": 400, "c": 1600}


@given(st.sampled_from(["uniform", "log_uniform_values", "normal", "int_uniform"]), shares, shares)
def test_a_higher_share_is_no_lower_value(name, one, other):
    assume(one < other)
    parameter = {"distribution": name} | ({} if name == "normal" else {"min": 2, "max": 90})
    assert draw(parameter, one, "x") <= draw(parameter, other, "x")


@pytest.mark.parametrize(
    ("parameter", "told"),
    [
        (
            {"distribution": "log_uniform_value", "min": 1, "max": 2},
            "no distribution 'log_uniform_value' to draw from; did",
        ),
        ({"distribution": "q_int_uniform", "min": 1, "max": 2}, "no distribution 'q_int_uniform'"),
        ({"distribution": "beta", "a": 1, "b": 2}, "no distribution 'beta'"),
        ({"min": 1}, "FILE: parameters.x.max must be a number, not None"),
        ({"min": "1e-5", "max": 1.0}, "x.min must be a number, not '1e-5'; YAML takes 1e-5 for text and 1.0e-5 for"),
        ({"min": 1, "max": True}, "x.max must be a number, not True"),
        ({"min": 1.0, "max": float("nan")}, "x.max must be a number, not nan"),
        ({"distribution": "int_uniform", "min": 1, "max": 2.5}, "x.max must be a whole number, not 2.5"),
        ({"min": 3, "max": 2}, "x.min=3 is above its max=2"),
        ({"distribution": "log_uniform_values", "min": 0, "max": 2}, "x.min must be above 0, not 0"),
        ({"distribution": "q_log_uniform_values", "min": -1, "max": 2}, "x.min must be above 0, not -1"),
        ({"distribution": "q_uniform", "min": 1, "max": 2, "q": 0}, "x.q must be above 0, not 0"),
        ({"distribution": "normal", "mu": 1, "sigma": 0}, "x.sigma must be above 0, not 0"),
        (
            {"distribution": "log_uniform", "min": 1, "max": 2000},
            "x: log_uniform draws numbers that are too large; its numbers are logarithms, and those of "
            "log_uniform_values are not",
        ),
        ({"distribution": "inv_log_uniform", "min": -2000, "max": 1}, "those of inv_log_uniform_values are not"),
        (
            {"distribution": "q_log_normal", "mu": 2000},
            "x: q_log_normal draws numbers that are too large; its numbers are logarithms",
        ),
        ({"distribution": "q_uniform", "min": 0, "max": 9, "q": 1e-320}, "x: q_uniform draws numbers that are too"),
        ({"min": 1, "max": 2, "q": 1}, "int_uniform takes no 'q'"),
        ({"min": 1, "max": 2, "maxx": 3}, "int_uniform takes no 'maxx'; did you mean max"),
        ({"values": [1, 2], "probabilities": [0.5]}, "x.probabilities must hold a number for each"),
        ({"values": [1, 2], "probabilities": [0.5, 0.6]}, "1 in all"),
        ({"values": [1, 2], "probabilities": "half"}, "x.probabilities must hold"),
    ],
)
def test_what_cannot_be_drawn_is_refused_with_the_key(parameter, told):
    with pytest.raises(UserError, match=re.escape(told)):
        draw(parameter, 0.5, "FILE: parameters.x")
