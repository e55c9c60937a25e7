"""The best of n trials on fresh seeds: simulated searches, whose true scores are known."""

import math
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from etude.report.statistics import Scores, best_of

Truth = Callable[[np.random.Generator, int], np.ndarray]

SHAPES: dict[str, Truth] = {  # of the true scores, in standard deviations of a seed
    "normal": lambda random, n: random.normal(0, 1, n),
    "uniform": lambda random, n: random.uniform(-1.7, 1.7, n),
    "exponential, to worse": lambda random, n: -random.exponential(1, n),
    "heavy tail, to worse": lambda random, n: -np.abs(random.standard_t(2, n)),
}


def everything(scores: np.ndarray, random: np.random.Generator) -> np.ndarray:
    return np.arange(len(scores))


def a_third_by_a_rung(true: np.ndarray, random: np.random.Generator) -> np.ndarray:
    """The trials that are promoted to their end: those that did best at a rung, which tells some of the truth."""
    return np.argsort(true + random.normal(0, 1, len(true)))[-len(true) // 3 :]


def simulate(truth: Truth, finish: Callable[..., np.ndarray] = everything) -> tuple[float, float, float, float]:
    """The coverage, half-width, optimism of the score and error of the expected score, over 200 searches."""
    random, rows = np.random.default_rng(0), []
    for _ in range(200):
        every = truth(random, 40)
        true = every[finish(every, random)]
        scores = true + random.normal(0, 1, len(true))
        best = int(scores.argmax())
        found = best_of(Scores("search", scores.tolist()), 1.0, 3, worse=40 - len(true))
        fresh = true[best] + random.normal(0, 1, 3).mean()
        holds, width = found.interval.low <= fresh <= found.interval.high, found.interval.high - found.interval.low
        rows.append((holds, width / 2, scores[best] - true[best], found.expected - true[best]))
    coverage, width, optimism, error = np.mean(rows, axis=0)
    return float(coverage), float(width), float(optimism), float(error)


@pytest.mark.parametrize("shape", SHAPES)
def test_over_two_hundred_searches_the_interval_holds_the_mean_of_three_fresh_seeds_and_is_narrow(shape: str) -> None:
    coverage, width, optimism, error = simulate(SHAPES[shape])
    assert 0.90 <= coverage <= 0.99
    assert width <= 2
    assert abs(error) < 0.2 * optimism  # most of what luck gave is taken back


@pytest.mark.parametrize("shape", SHAPES)
def test_it_holds_where_a_rung_chose_the_trials_that_came_to_their_end(shape: str) -> None:
    coverage, *_ = simulate(SHAPES[shape], a_third_by_a_rung)
    assert 0.90 <= coverage <= 0.99


SCORES = st.lists(st.floats(-50, 50).map(lambda x: round(x, 3)), min_size=2, max_size=30)


@settings(deadline=None, max_examples=30)
@given(SCORES, st.floats(0.1, 10), st.floats(0.01, 100), st.floats(-100, 100))
def test_it_has_the_unit_and_the_direction_of_the_metric(
    scores: list[float], deviation: float, unit: float, shift: float
) -> None:
    found = best_of(Scores("search", scores), deviation)
    other = best_of(Scores("search", [unit * score + shift for score in scores]), unit * deviation)
    worst = best_of(Scores("search", [-score for score in scores]), deviation, lower_is_better=True)
    near = {"rel": 1e-6, "abs": 1e-6 * unit * 100}
    assert other.expected == pytest.approx(unit * found.expected + shift, **near)
    assert [*other.interval] == pytest.approx([unit * end + shift for end in found.interval], **near)
    assert (worst.score, worst.expected) == pytest.approx((-found.score, -found.expected))
    assert [*worst.interval] == pytest.approx([-end for end in reversed(found.interval)])
    assert found.expected <= found.score + 1e-9


def test_a_trial_that_stands_far_out_is_believed_and_one_of_many_alike_is_not() -> None:
    alike = np.random.default_rng(0).normal(0, 1, 40).tolist()
    among = best_of(Scores("search", alike), 1.0)
    assert among.score - among.expected > 1
    apart = best_of(Scores("search", [10.0 * n for n in range(20)]), 1.0)
    assert apart.score - apart.expected < 0.2


def test_more_fresh_seeds_narrow_it_to_what_is_known_of_the_trial() -> None:
    scores = Scores("search", [10.0 * n for n in range(20)])
    widths = [best_of(scores, 1.0, seeds).interval for seeds in (1, 3, 10_000)]
    known = [1.96 * math.sqrt(1 + 1 / seeds) for seeds in (1, 3, 10_000)]
    assert [(end.high - end.low) / 2 for end in widths] == pytest.approx(known, rel=0.02)


def test_the_mean_of_several_seeds_is_less_optimistic() -> None:
    scores = Scores("search", np.random.default_rng(3).normal(0, 1, 40).tolist())
    one, nine = best_of(scores, 1.0), best_of(scores, 1.0, averaged=9)
    assert one.score - one.expected > nine.score - nine.expected > 0


def test_a_deviation_from_few_seeds_widens_it() -> None:
    scores = Scores("search", np.random.default_rng(3).normal(0, 1, 40).tolist())
    widths = [found.high - found.low for f in (3, 30, math.inf) if (found := best_of(scores, 1.0, freedom=f).interval)]
    assert widths == sorted(widths, reverse=True)


def test_the_second_best_is_expected_below_the_best() -> None:
    scores = Scores("search", [1.0, 2.0, 2.5, 3.0, 0.0, 0.5])
    places = [best_of(scores, 0.5, place=place) for place in range(3)]
    assert [found.score for found in places] == [3.0, 2.5, 2.0]
    assert places[0].expected > places[1].expected > places[2].expected


@pytest.mark.parametrize(("deviation", "seeds"), [(0.0, 3), (float("nan"), 3), (1.0, 0)])
def test_without_a_spread_or_a_fresh_seed_it_is_refused(deviation: float, seeds: int) -> None:
    with pytest.raises(ValueError, match="a deviation above zero and a fresh seed"):
        best_of(Scores("search", [1.0, 2.0]), deviation, seeds)
