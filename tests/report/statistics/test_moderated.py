"""Many arms with few seeds: what they borrow from each other, and what it costs and buys, in simulated studies."""

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from etude.report.statistics import Comparison, Scores, equivalence, holm, moderate, moderated_test, welch

ARMS, SEEDS, STUDIES = 20, 3, 200


def study(random: np.random.Generator, deviations: list[float], away: float = 0.0) -> list[Scores]:
    """Arms of so many deviations, the first one the base; the second lies `away` from the others."""
    values = random.normal(0, 1, (len(deviations), SEEDS)) * np.array(deviations)[:, None]
    values[1] += away
    return [Scores(str(arm), row.tolist()) for arm, row in enumerate(values)]


def compare_all(arms: list[Scores]) -> dict[str, Comparison]:
    prior = moderate(arms)
    assert prior
    return {arm.arm: moderated_test(arm, arms[0], prior) for arm in arms[1:]}


def stars(found: dict[str, Comparison]) -> set[str]:
    return {arm for arm, p in holm({arm: one.p for arm, one in found.items() if one.p is not None}).items() if p < 0.05}


def test_arms_that_vary_no_more_unlike_than_chance_share_the_pooled_variance() -> None:
    """And the test is then the one of an analysis of variance, but for arms above the common variance."""
    arms = [Scores(name, [level - 1, level, level + 1]) for name, level in (("base", 0), ("A", 3), ("B", 5))]
    prior = moderate(arms)
    assert prior
    assert (prior.variance, prior.freedom) == (pytest.approx(1.0), 6)
    found = moderated_test(arms[1], arms[0], prior)
    t = 3 / np.sqrt(2 / 3)
    assert found.p == pytest.approx(2 * stats.t.sf(t, 6))
    assert found.interval == pytest.approx(stats.t.interval(0.95, 6, loc=3, scale=np.sqrt(2 / 3)))


@given(st.lists(st.lists(st.floats(-5, 5), min_size=3, max_size=3), min_size=2, max_size=8))
def test_no_arm_counts_for_less_than_its_own_spread(values: list[list[float]]) -> None:
    arms = [Scores(str(k), row) for k, row in enumerate(values)]
    prior = moderate(arms)
    for arm in arms if prior else []:
        variance, freedom = prior.of(arm)
        assert variance >= arm.variance
        assert freedom <= prior.total


def test_one_arm_with_seeds_lends_its_spread_and_no_more_degrees_of_freedom_than_it_has() -> None:
    """The interval of an arm of one seed is the one in which a single run of the base would be expected to lie."""
    base, arm = Scores("base", [1.0, 1.2, 1.4]), Scores("A", [2.0])
    prior = moderate([base, arm])
    assert prior
    found = moderated_test(arm, base, prior)
    reach = stats.t.isf(0.025, 2) * 0.2 * np.sqrt(1 + 1 / 3)
    assert found.interval == pytest.approx((0.8 - reach, 0.8 + reach))
    assert found.p is None
    assert "A has one seed" in found.why_not
    assert equivalence(arm, base, prior, 1.0) is None


@pytest.mark.parametrize("arms", [[Scores("base", [1.0]), Scores("A", [2.0])], [Scores("base", [1.0, 1.0])]])
def test_without_any_spread_there_is_nothing_to_borrow(arms: list[Scores]) -> None:
    assert moderate(arms) is None


def test_arms_are_equivalent_where_the_ninety_per_cent_interval_lies_within_the_margin() -> None:
    """What two one-sided tests at 5 % say, by an independent road."""
    arms = study(np.random.default_rng(3), [1.0] * 8)
    prior = moderate(arms)
    assert prior
    for arm in arms[1:]:
        low, high = moderated_test(arm, arms[0], prior, level=0.9).interval or (0, 0)
        for margin in (0.5, 1.0, 2.0, 4.0):
            p = equivalence(arm, arms[0], prior, margin)
            assert p is not None
            assert (p < 0.05) == (-margin < low and high < margin)


def test_a_margin_of_nothing_is_refused() -> None:
    arms = [Scores("base", [1.0, 2.0]), Scores("A", [1.0, 2.0])]
    prior = moderate(arms)
    assert prior
    with pytest.raises(ValueError, match="a margin above 0, not 0"):
        equivalence(arms[1], arms[0], prior, 0)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("deviations", "false_alarms", "coverage"),
    [
        ([1.0] * ARMS, 0.05, 0.95),
        ([1.0, 1.0, 5.0] + [1.0] * (ARMS - 3), 0.09, 0.95),
        ([5.0] + [1.0] * (ARMS - 1), 0.09, 0.86),
    ],
    ids=["all alike", "one arm varies five times as much", "the base does"],
)
def test_stars_of_arms_without_a_difference_are_rare(
    deviations: list[float], false_alarms: float, coverage: float, at_most: Callable[[int, int, float], bool]
) -> None:
    starred = missed = 0
    for trial in range(STUDIES):
        found = compare_all(study(np.random.default_rng(trial), deviations))
        starred += bool(stars(found))
        missed += sum(not one.interval.low <= 0 <= one.interval.high for one in found.values() if one.interval)
    assert at_most(starred, STUDIES, false_alarms)
    assert missed / (STUDIES * (ARMS - 1)) < 1 - coverage + 0.02  # arms share a base: no binomial count


@pytest.mark.slow
def test_a_difference_of_four_deviations_is_seen_where_welchs_test_is_blind(
    nominal: Callable[[int, int, float], bool],
) -> None:
    seen = by_welch = 0
    for trial in range(STUDIES):
        arms = study(np.random.default_rng(trial), [1.0] * ARMS, away=4)
        seen += "1" in stars(compare_all(arms))
        by_welch += "1" in stars({arm.arm: welch(arm, arms[0]) for arm in arms[1:]})
    assert nominal(seen, STUDIES, 0.80)
    assert nominal(by_welch, STUDIES, 0.14)


@pytest.mark.slow
def test_arms_that_lie_at_the_margin_are_rarely_called_equivalent(at_most: Callable[[int, int, float], bool]) -> None:
    called = 0
    for trial in range(400):
        arms = study(np.random.default_rng(trial), [1.0] * ARMS, away=3)
        prior = moderate(arms)
        assert prior
        called += (equivalence(arms[1], arms[0], prior, margin=3) or 0) < 0.05
    assert at_most(called, 400, 0.05)
