"""Effects of a grid: against statsmodels' numbers, against differences of means, and what a fraction does not tell."""

from itertools import product

import numpy as np
import pytest

from etude.report.statistics import Scores, fit_effects, moderate, moderated_test


def grid(*sizes: int) -> dict[str, dict[str, str]]:
    factors = "abcdef"[: len(sizes)]
    cells = product(*(range(size) for size in sizes))
    return {"".join(map(str, c)): {f: f"{f}{v}" for f, v in zip(factors, c, strict=True)} for c in cells}


def drawn(levels: dict[str, dict[str, str]], seeds: int, seed: int = 0) -> list[Scores]:
    random = np.random.default_rng(seed)
    return [Scores(arm, random.normal(len(arm), 1, seeds).round(3).tolist()) for arm in levels]


def test_in_a_whole_grid_effects_are_differences_of_means() -> None:
    levels = grid(2, 3, 2)
    arms = drawn(levels, 3)
    mean = np.array([arm.mean for arm in arms]).reshape(2, 3, 2)
    found = {effect.values: effect.test.difference for effect in fit_effects(levels, arms)}
    assert len(found) == 4 + 2 + 1 + 2
    assert found[(("b", "b2"),)] == pytest.approx((mean[:, 2] - mean[:, 0]).mean())
    together = (mean[1, 2] - mean[0, 2]) - (mean[1, 0] - mean[0, 0])
    assert found[("a", "a1"), ("b", "b2")] == pytest.approx(together.mean())


@pytest.mark.parametrize(
    ("values", "estimate", "low", "high", "p"),
    [
        ((("b", "b2"),), 0.148544643, -0.579437866, 0.876527152, 0.666583258),
        ((("a", "a1"), ("b", "b2")), 2.425910714, 0.969945696, 3.881875732, 0.003234461),
    ],
)
def test_the_plain_fit_is_that_of_statsmodels(
    values: tuple[tuple[str, str], ...], estimate: float, low: float, high: float, p: float
) -> None:
    """OLS(...).fit().t_test(...) of statsmodels 0.15.0, for a grid of which one arm lost a seed."""
    levels = grid(2, 3, 2)
    arms = [arm if n != 5 else Scores(arm.arm, arm.values[:1]) for n, arm in enumerate(drawn(levels, 2))]
    found = {effect.values: effect.plain for effect in fit_effects(levels, arms)}[values]
    assert (found.difference, found.p) == pytest.approx((estimate, p))
    assert found.interval == pytest.approx((low, high))


def test_of_two_arms_the_effect_is_their_moderated_difference() -> None:
    levels = grid(2)
    arms = drawn(levels, 3)
    [effect] = fit_effects(levels, arms)
    expected = moderated_test(arms[1], arms[0], moderate(arms))
    assert effect.moderated
    assert effect.moderated.p == pytest.approx(expected.p)
    assert effect.moderated.interval == pytest.approx(expected.interval)


def test_half_a_grid_of_five_tells_all_pairs_and_half_of_four_none() -> None:
    """Resolution V and IV: of four factors, each pair is the same as another one, and main effects are free of them."""
    for size, pairs in ((5, 10), (4, 0)):
        whole = grid(*[2] * size)
        half = {arm: of for arm, of in whole.items() if arm.count("1") % 2 == 0}
        truth = {arm: 0.3 * arm.startswith("1") + 0.2 * arm.startswith("11") for arm in whole}
        arms = [Scores(arm, [truth[arm], truth[arm] + 0.001]) for arm in half]
        found = {effect.values: effect for effect in fit_effects(half, arms)}
        assert sum(len(values) == 2 for values in found) == pairs
        assert found[(("a", "a1"),)].test.difference == pytest.approx(0.4)
        assert found[(("a", "a1"),)].among_pairs
        if pairs:
            assert found[("a", "a1"), ("b", "b1")].test.difference == pytest.approx(0.2)


def test_a_quarter_of_four_leaves_main_effects_that_hold_if_no_two_act_together() -> None:
    quarter = {arm: of for arm, of in grid(2, 2, 2).items() if arm in ("000", "011", "101", "110")}
    found = fit_effects(quarter, drawn(quarter, 2))
    assert [effect.values for effect in found] == [(("a", "a1"),), (("b", "b1"),), (("c", "c1"),)]
    assert not any(effect.among_pairs for effect in found)


def test_one_seed_of_a_grid_of_two_leaves_nothing_to_test_with() -> None:
    levels = grid(2, 2)
    effect = fit_effects(levels, drawn(levels, 1))[0]
    assert effect.moderated is None
    assert effect.test.p is None
    assert "nothing over" in effect.test.why_not
