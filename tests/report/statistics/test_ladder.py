"""What a ladder of small models says about larger ones: against brute force, and in simulated studies."""

import importlib.util
from dataclasses import replace
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import optimize, stats

from etude.report.statistics import (
    Interval,
    carry,
    decide,
    find_decay,
    find_noise,
    fit_curve,
    fit_laws,
    interval_score,
    judge,
)

X = [float(np.log(2) * n) for n in range(5)]
SEEDS = (3, 3, 1, 1, 2)


def drawn(arms: int, seed: int = 0, noise: float = 0.01) -> dict[str, list[list[float]]]:
    """Differences that are lines in ln compute, with seeds that differ."""
    random = np.random.default_rng(seed)
    lines = random.normal(0, [0.05, 0.02], (arms, 2))
    return {
        f"A{arm}": [(a + b * x + random.normal(0, noise, n)).tolist() for x, n in zip(X, SEEDS, strict=True)]
        for arm, (a, b) in enumerate(lines)
    }


def test_the_law_of_one_arm_is_the_textbooks_weighted_line() -> None:
    """Value and variance by matrices; the largest rung lies off the line, and what it adds grows with the distance."""
    differences, decay, x = drawn(1), 0.2, 6.0
    z = (1 - np.exp(-decay * np.array(X))) / decay
    means, weights = np.array([np.mean(one) for one in differences["A0"]]), np.array(SEEDS, dtype=float)
    design = np.stack([np.ones(5), z], axis=1)
    covariance = np.linalg.inv(design.T @ np.diag(weights) @ design)
    fitted = covariance @ design.T @ np.diag(weights) @ means
    residuals = means - design @ fitted
    groups = [one for one in differences["A0"] if len(one) > 1]
    noise = sum(np.var(one, ddof=1) * (len(one) - 1) for one in groups) / 5
    hat = design @ covariance @ design.T @ np.diag(weights)
    room = np.trace(np.diag(weights) @ (np.eye(5) - hat))
    excess, luck = (weights @ residuals**2 - 3 * noise) / room, np.sqrt(2 * 3) * noise / room
    beyond = stats.truncnorm.median(-excess / luck, np.inf, excess, luck)  # a variance is not negative
    there = np.array([1, (1 - np.exp(-decay * x)) / decay])
    law = fit_laws(X, differences, decay)["A0"]
    found = law.at(x)
    assert found.value == pytest.approx(there @ fitted)
    assert found.error**2 == pytest.approx(noise * there @ covariance @ there + beyond * (x / X[-1]) ** 2)
    assert found.freedom == 5
    assert found.interval == pytest.approx(stats.t.interval(0.9, 5, found.value, found.error))
    assert found.sign == pytest.approx(stats.t.cdf(abs(found.value) / found.error, 5))
    assert law.at(x, seeds=2).error ** 2 == pytest.approx(found.error**2 + noise / 2)
    assert law.at(law.crossing).value == pytest.approx(0, abs=1e-9)


def test_slopes_that_differ_by_luck_alone_become_one() -> None:
    random = np.random.default_rng(1)
    base = [random.normal(0, 0.01, n) for n in SEEDS]
    flat = {f"A{n}": [(random.normal(0, 0.01, len(one)) - one).tolist() for one in base] for n in range(8)}
    slopes = {arm: law.slope for arm, law in fit_laws(X, flat).items()}
    steep = {arm: law.slope for arm, law in fit_laws(X, drawn(8)).items()}
    assert np.ptp([*slopes.values()]) < 0.5 * np.ptp([*steep.values()])
    alone = {arm: fit_laws(X, {arm: flat[arm]})[arm].slope for arm in flat}
    assert np.ptp([*slopes.values()]) < 0.7 * np.ptp([*alone.values()])


def test_seeds_alone_say_how_far_seeds_differ() -> None:
    assert find_noise({"A": [[0.1], [0.2], [0.3]]}) is None
    with pytest.raises(ValueError, match="two seeds"):
        fit_laws(X[:3], {"A": [[0.1], [0.2], [0.3]]})


@given(st.floats(-3, 3), st.floats(0, 3), st.floats(-6, 6))
def test_the_interval_score_is_the_loss_of_its_two_quantiles(low: float, width: float, came: float) -> None:
    """Gneiting & Raftery 2007, equation 43: pinball losses at 5 and 95 %, times 2 / 0.1."""
    pinball = sum(max(q * (came - end), (q - 1) * (came - end)) for q, end in ((0.05, low), (0.95, low + width)))
    assert interval_score(Interval(low, low + width), came) == pytest.approx(20 * pinball, abs=1e-9)


def test_decisions_are_counted_over_all_pairs_with_the_baseline() -> None:
    random = np.random.default_rng(2)
    guess, came = ({f"A{n}": value for n, value in enumerate(random.normal(0, 1, 6))} for _ in range(2))
    error = dict.fromkeys(came, 0.05)
    found = decide(guess, came, error)
    with_base = [{"base": 0.0, **one} for one in (guess, came)]
    pairs = [*combinations(with_base[0], 2)]
    right = [(with_base[0][a] - with_base[0][b]) * (with_base[1][a] - with_base[1][b]) > 0 for a, b in pairs]
    clear = [abs(with_base[1][a] - with_base[1][b]) > 2 * np.sqrt(0.05) for a, b in pairs]
    assert (found.pairs, found.right, found.share) == (21, sum(right), sum(right) / 21)
    assert (found.clear, found.clear_right) == (sum(clear), sum(map(lambda r, c: r and c, right, clear)))


def test_what_is_held_out_predicts_nothing() -> None:
    differences, baseline = drawn(6), [[3.0], [2.9], [2.8], [2.72], [2.65]]
    moved = {arm: [*rungs[:3], *([v + 1 for v in rung] for rung in rungs[3:])] for arm, rungs in differences.items()}
    for before, after in zip(
        judge(X, differences, baseline), judge(X, moved, [*baseline[:3], [1.0], [0.5]]), strict=True
    ):
        assert before.predicted == after.predicted
        assert len(before.covered) > len(after.covered) == 0
        assert after.score > before.score
        assert after.came == pytest.approx({arm: value + 1 for arm, value in before.came.items()})


def test_carrying_the_last_rung_forward_is_its_mean_and_its_noise() -> None:
    law = fit_laws(X, drawn(1))["A0"]
    found = carry(law, [0.1, 0.3], seeds=4)
    assert (found.value, found.error**2) == (pytest.approx(0.2), pytest.approx(law.noise * 0.75))


@pytest.mark.parametrize("exponent", [0.05, 0.15, 0.5])
def test_the_baselines_curve_is_found_and_turns_a_difference_into_compute(exponent: float) -> None:
    curve = fit_curve(X, (1.7 + 1.8 * np.exp(-exponent * np.array(X))).tolist())
    assert curve
    assert (curve.floor, curve.scale, curve.exponent) == pytest.approx((1.7, 1.8, exponent), rel=1e-3)
    factor = curve.multiplier(4.0, -0.05)
    assert curve.at(4.0 + np.log(factor)) == pytest.approx(curve.at(4.0) - 0.05)
    assert factor > 1
    assert curve.multiplier(4.0, -2.0) == np.inf
    assert replace(curve, exponent=1e-3).multiplier(4.0, -0.5) == np.inf  # many powers of ten


@pytest.mark.parametrize("loss", [[1.0, 1.1, 1.2, 1.3, 1.4], [3.0, 2.0, 1.0]])
def test_no_curve_falls_through_what_rises_or_is_short(loss: list[float]) -> None:
    assert fit_curve(X[: len(loss)], loss) is None


@pytest.mark.parametrize("exponent", [0.05, 0.3, 1.4])
@pytest.mark.parametrize("rungs", [3, 5])
def test_the_exponent_is_that_of_the_baseline_where_luck_is_small(exponent: float, rungs: int) -> None:
    losses = [[1.7 + 1.8 * float(np.exp(-exponent * x))] * 3 for x in X[:rungs]]
    assert find_decay(X[:rungs], losses, {"A": [[0.1, 0.1001]] * rungs}) == pytest.approx(exponent, rel=0.05)


@pytest.mark.parametrize("luck", [0.002, 0.02, 0.2])
def test_the_exponent_is_the_most_probable_one(luck: float) -> None:
    """Found by another search, over E, A and ln a at once."""
    random = np.random.default_rng(3)
    losses = [
        (1.7 + 1.8 * np.exp(-0.6 * x) + random.normal(0, luck, n)).tolist() for x, n in zip(X, SEEDS, strict=True)
    ]
    differences = {"A": [[0.0, luck * 2]] * 5}  # of a variance of twice that of a run

    def improbable(at: np.ndarray) -> float:
        floor, scale, log_a = at
        curve = floor + scale * np.exp(-np.exp(log_a) * np.array(X))
        misfit = sum(len(rung) * (np.mean(rung) - on) ** 2 for rung, on in zip(losses, curve, strict=True))
        return float(misfit / luck**2 + (log_a - np.log(0.15)) ** 2)

    best = optimize.minimize(
        improbable, [1.7, 1.8, np.log(0.3)], method="Nelder-Mead", options={"maxiter": 9000, "fatol": 1e-9}
    )
    assert find_decay(X, losses, differences) == pytest.approx(np.exp(best.x[2]), rel=0.03)


@pytest.mark.parametrize("losses", [[1.0, 1.1, 1.2, 1.3, 1.4], [2.0, 1.0]])
def test_of_a_loss_that_rises_or_two_rungs_the_exponent_is_what_is_known_before(losses: list[float]) -> None:
    differences = {"A": [[0.1, 0.2]] * len(losses)}
    assert find_decay(X[: len(losses)], [[one] for one in losses], differences) == pytest.approx(0.15, rel=0.03)


@pytest.mark.parametrize(
    ("world", "least"),
    [("power laws", 0.82), ("laws that break at the third rung", 0.7), ("heavy tails", 0.82), ("a floor", 0.82)],
)
def test_intervals_of_simulated_studies_hold_the_truth_and_beat_the_last_rung(world: str, least: float) -> None:
    """Some forty of the studies that docs/ladders.md tells of."""
    file = Path(__file__).parents[3] / "docs" / "simulate_ladders.py"
    spec = importlib.util.spec_from_file_location("simulate_ladders", file)
    assert spec
    assert spec.loader
    simulation = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(simulation)
    found = simulation.simulate(world, 40)
    assert least <= found["coverage"] <= 0.97
    assert found["score"] < found["carried"]
