"""Random search draws what W&B's distributions say."""

import math
import re
from collections import Counter
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution
from scipy import stats

from etude.errors import UserError
from etude.search.distributions import listed, read_distribution, share

SHARES = [(k + 0.5) / 2000 for k in range(2000)]

numbers = st.floats(-1e6, 1e6)
shares = st.floats(0, 1, exclude_min=True, exclude_max=True)


def draw(parameter: dict[str, Any], at: float, where: str) -> Any:
    return read_distribution(parameter, where).quantile(at)


def drawn(parameter: dict[str, Any]) -> list[Any]:
    quantile = read_distribution(parameter, "FILE: parameters.x").quantile
    return [quantile(at) for at in SHARES]


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
        ({"distribution": "beta", "a": 0, "b": 2}, "x.a must be above 0, not 0"),
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


@pytest.mark.parametrize(
    ("parameter", "expected"),
    [  # by scipy, where W&B takes its quantiles from
        ({"distribution": "beta", "a": 2, "b": 10}, stats.beta(2, 10)),
        ({"distribution": "beta", "a": 0.5, "b": 0.5}, stats.beta(0.5, 0.5)),
        ({"distribution": "beta"}, stats.uniform()),
        ({"distribution": "normal", "mu": 0.1, "sigma": 0.02}, stats.norm(0.1, 0.02)),
        ({"distribution": "log_normal", "mu": 1.0, "sigma": 0.3}, stats.lognorm(s=0.3, scale=math.e)),
        ({"distribution": "log_uniform_values", "min": 0.1, "max": 4}, stats.loguniform(0.1, 4)),
        ({"distribution": "log_uniform", "min": -2, "max": 1}, stats.loguniform(math.exp(-2), math.e)),
    ],
)
def test_quantiles_are_those_of_scipy(parameter: dict[str, Any], expected: Any) -> None:
    assert drawn(parameter) == pytest.approx(expected.ppf(SHARES))
    rounded = drawn(parameter | {"distribution": f"q_{parameter['distribution']}", "q": 0.05})
    assert rounded == pytest.approx([round(value / 0.05) * 0.05 for value in expected.ppf(SHARES)])


@pytest.mark.parametrize(
    ("parameter", "expected"),
    [
        ({"min": 0.1, "max": 2.0}, FloatDistribution(0.1, 2.0)),
        ({"min": 1, "max": 5}, IntDistribution(1, 5)),
        ({"distribution": "log_uniform_values", "min": 0.1, "max": 4}, FloatDistribution(0.1, 4, log=True)),
        ({"distribution": "log_uniform", "min": 0, "max": 1}, FloatDistribution(1.0, math.e, log=True)),
        ({"distribution": "inv_log_uniform", "min": 0, "max": 1}, FloatDistribution(1 / math.e, 1.0, log=True)),
        ({"distribution": "inv_log_uniform_values", "min": 0.2, "max": 2}, FloatDistribution(0.2, 2, log=True)),
        ({"values": ["adam", None, 0.5, 3]}, CategoricalDistribution(["adam", None, 0.5, 3])),
    ],
)
@given(shares)
def test_what_optuna_has_it_draws_itself(parameter: dict[str, Any], expected: Any, at: float) -> None:
    found = read_distribution(parameter, "x")
    dimension = found.dimension()
    assert dimension.distribution == expected
    assert dimension.convert(found.draw(at)) == found.quantile(at)
    assert expected._contains(expected.to_internal_repr(found.draw(at)))


@pytest.mark.parametrize(
    "parameter",
    [
        {"distribution": "normal"},
        {"distribution": "beta", "a": 2, "b": 10},
        {"distribution": "q_uniform", "min": 0.0, "max": 0.3, "q": 0.05},
        {"values": ["a", "b"], "probabilities": [0.9, 0.1]},
        {"values": [[0.9, 0.98], [0.9, 0.999]]},
        {"values": [1, True]},  # which Optuna takes for one value
    ],
)
@given(st.floats(2**-53, 1 - 2**-53))
def test_of_what_optuna_lacks_it_draws_the_probability(parameter: dict[str, Any], at: float) -> None:
    found = read_distribution(parameter, "x")
    assert found.dimension().distribution == FloatDistribution(0.0, 1.0)
    assert found.draw(at) == at
    assert found.dimension().convert(at) == found.quantile(at)


def test_a_rounded_value_may_lie_beyond_the_bounds_as_at_wandb() -> None:
    parameter = {"distribution": "q_uniform", "min": 0.3, "max": 0.9, "q": 0.5}
    assert {draw(parameter, share, "x") for share in (0.01, 0.2, 0.5, 0.99)} == {0.5, 1.0}


@pytest.mark.parametrize("name", ["normal", "log_normal", "beta", "q_normal"])
def test_a_sampler_may_ask_for_the_ends(name: str) -> None:
    convert = read_distribution({"distribution": name}, "x").dimension().convert
    assert convert(0.0) < convert(0.5) < convert(1.0)
    assert all(map(math.isfinite, (convert(0.0), convert(1.0))))


@pytest.mark.parametrize(
    ("parameter", "values"),
    [
        ({"distribution": "int_uniform", "min": 2, "max": 5}, [2, 3, 4, 5]),
        ({"min": 2, "max": 3}, [2, 3]),
        ({"distribution": "q_uniform", "min": 0.0, "max": 0.3, "q": 0.1}, [0.0, 0.1, 0.2]),
        ({"distribution": "q_uniform", "min": 1, "max": 1.3, "q": 0.1}, [1.0, 1.1, 1.2]),
        ({"distribution": "q_uniform", "min": 0, "max": 10, "q": 4}, [0, 4, 8]),
        ({"distribution": "q_uniform", "min": 0, "max": 3}, [0, 1, 2]),
        ({"values": ["b", "a"]}, ["b", "a"]),
    ],
)
def test_a_grid_lists_whole_numbers_with_their_maximum_and_rounded_ones_without(
    parameter: dict[str, Any], values: list[Any]
) -> None:
    assert listed(parameter, "x") == values


def test_a_grid_has_no_list_of_other_distributions() -> None:
    with pytest.raises(
        UserError, match=r"x: a grid takes values: \[\.\.\.\], int_uniform or q_uniform, and uniform has no"
    ):
        listed({"min": 0.1, "max": 1.0}, "x")
