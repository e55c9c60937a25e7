"""Seeds are added until an arm is decided: what a table says of such a study."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from etude.report import report, results, undecided
from etude.report import statistics as st
from etude.report.comparison import Difference
from etude.store.run_dir import RunDir

from .conftest import declared

LEAST, MOST, MARGIN = 2, 5, 0.05
SHARES = [n / MOST for n in range(LEAST, MOST + 1)]
ARMS = ("base", "A1", "A2", "E1", "long")
AWAY = {"base": 0.0, "A1": 0.4, "A2": 0.0, "E1": 0.045, "long": 0.06}  # nats from the baseline

Make = Callable[..., RunDir]


@pytest.fixture
def study(runs_dir: Path) -> Path:
    seeds = {"least": LEAST, "most": MOST, "until": "decided"}
    declared(runs_dir, seeds=seeds, agreement={"large": 0.03, "margin": MARGIN})
    return runs_dir


def losses(arm: str) -> list[float]:
    drawn = np.random.default_rng(ARMS.index(arm)).normal(1.1 + AWAY[arm], 0.01, MOST)
    return [float(loss) for loss in drawn]


def differences(runs_dir: Path) -> dict[str, Difference]:
    compared = results("heads", runs_dir).compare()
    return {arm.arm: arm.against.differences["ppl"] for arm in compared.arms if arm.against}


def test_the_first_look_that_decides_counts_and_asks_for_what_its_looks_and_arms_allow(
    study: Path, make_run: Make
) -> None:
    """Beside the tests of each look, one after the other."""
    for arm in ARMS:
        for seed, loss in enumerate(losses(arm), start=1):
            make_run(arm, seed, ppl=float(np.exp(loss)))
    stars = st.nominal_levels(SHARES, 0.05 / (len(ARMS) - 1), sides=2)
    ties = st.nominal_levels(SHARES, 0.05, sides=1)
    found, looks = differences(study), set()
    for arm in ARMS[1:]:
        for look, number in enumerate(range(LEAST, MOST + 1)):
            scores = {name: st.Scores(name, losses(name)[:number]) for name in ARMS}
            prior = st.moderate([*scores.values()])
            assert prior
            p = st.moderated_test(scores[arm], scores["base"], prior).p
            tie = st.equivalence(scores[arm], scores["base"], prior, MARGIN)
            assert p is not None
            assert tie is not None
            if p < stars[look] or tie < ties[look]:
                break
        looks.add(number)
        assert found[arm].test.p == pytest.approx(p)
        assert (found[arm].star, found[arm].tied) == (p < stars[look], tie < ties[look])
    assert len(looks) > 1, "all arms were decided by the same look"
    assert found["A1"].star
    assert found["A2"].tied


def test_what_is_decided_is_not_looked_at_again(study: Path, make_run: Make) -> None:
    for arm in ARMS:
        for seed, loss in enumerate(losses(arm)[:3], start=1):
            make_run(arm, seed, ppl=float(np.exp(loss)))
    before = differences(study)
    assert before["A1"].star
    for arm in ("base", "A1"):
        for seed in (4, 5):
            make_run(arm, seed, ppl=9.0)
    after = differences(study)["A1"]
    assert (after.star, after.tied, after.test.p) == (before["A1"].star, before["A1"].tied, before["A1"].test.p)


@pytest.mark.parametrize("side", ["base", "A1"])
def test_what_was_decided_is_open_again_where_a_run_diverged_since(side: str, study: Path, make_run: Make) -> None:
    for arm in ARMS:
        for seed, loss in enumerate(losses(arm)[:3], start=1):
            make_run(arm, seed, ppl=float(np.exp(loss)))
    assert differences(study)["A1"].star
    make_run(side, 4, ppl=float("nan"))
    found = differences(study)["A1"]
    assert (found.star, found.tied, found.test.interval) == (False, False, None)
    assert f"seed 4 of {side} diverged" in found.test.why_not


def test_a_difference_is_that_of_the_means_beside_it_though_fewer_seeds_decided(study: Path, make_run: Make) -> None:
    for arm in ARMS:
        for seed, loss in enumerate(losses(arm)[: 5 if arm == "base" else 3], start=1):
            make_run(arm, seed, ppl=float(np.exp(loss)))
    found = differences(study)["A1"]
    assert found.star
    assert found.test.difference == pytest.approx(np.mean(losses("A1")[:3]) - np.mean(losses("base")))


def test_arms_that_are_not_decided_are_named_and_need_a_seed_more(study: Path, make_run: Make) -> None:
    runs = [
        make_run(arm, seed, ppl=float(np.exp(loss)))
        for arm in ARMS
        for seed, loss in enumerate(losses(arm)[: 2 if arm == "A2" else 3], start=1)
    ]
    compared = results("heads", study).compare()
    left = undecided(compared.study, runs)
    assert left == [arm for arm, one in differences(study).items() if not (one.star or one.tied)]
    assert "E1" in left
    told = "\n".join(report("heads", study, {}).rows.sentences)
    assert f"{LEAST} to {MOST} of an arm: 2 of A2; 3 of base, A1, E1, long. Not decided: {', '.join(left)}" in told
