"""How many seeds a study needs."""

import json
import math
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from statistics import variance
from typing import Any

import pytest

from etude.cli.plan import main as plan
from etude.errors import UserError
from etude.report.power import Noise, find_noise, on_detection, seeds_for
from etude.store.run_dir import RunDir
from etude.study.study import load_study

Make = Callable[..., RunDir]
POCKET = {"data": "grammar", "scale": "pocket", "budget": "pocket"}


@pytest.mark.parametrize(
    ("difference", "deviation", "others", "seeds"),
    [
        (0.02, 0.01, 1, 5.08999456823225),
        (0.02, 0.01, 19, 9.789858403778837),
        (0.05, 0.04, 4, 15.910539229548702),
        (1.0, 0.5, 10, 8.766810423315626),
        (0.01, 0.05, 1, 393.4056930002527),
    ],
)
def test_the_seeds_are_those_of_statsmodels(difference: float, deviation: float, others: int, seeds: float) -> None:
    """TTestIndPower().solve_power(effect_size=difference / deviation, alpha=0.05 / others, power=0.8), of 0.15.0."""
    study = replace(load_study("table3"), arms={str(arm): [] for arm in range(others + 1)})
    assert seeds_for(study, Noise(deviation, 0.0, 6, "table3"), difference) == math.ceil(seeds)


def test_the_spread_is_that_of_the_studys_own_runs_in_nats(runs_dir: Path, make_run: Make) -> None:
    study = load_study("heads")
    for seed, ppl in ((1, 3.0), (2, 3.1), (3, 3.3)):
        make_run("base", seed, ppl=ppl)
    noise = find_noise(study, runs_dir, POCKET)
    assert noise is not None
    assert noise.of_run == pytest.approx(math.sqrt(variance(map(math.log, (3.0, 3.1, 3.3)))))
    assert (noise.runs, noise.study, noise.of_test_sets) == (3, "heads", 0.0)


def test_without_runs_of_its_own_it_is_that_of_a_recorded_study_of_the_same_setting(runs_dir: Path) -> None:
    noise = find_noise(load_study("heads"), runs_dir, POCKET)
    assert noise is not None
    assert noise.study != "heads"
    assert find_noise(load_study("heads"), runs_dir, POCKET | {"data": "files"}) is None


def test_a_difference_that_the_test_set_hides_takes_no_number_of_seeds(runs_dir: Path) -> None:
    study, noise = load_study("heads"), Noise(0.3, 1.0, 6, "heads")
    assert seeds_for(study, noise, 0.5) is None
    assert "No number of seeds finds" in on_detection(study, noise, 0.5, "0", None)
    assert "`etude sweep heads seed=1,2,3` makes some" in on_detection(study, None, 0.5, "0", None)


def test_a_spread_is_told_with_the_digits_of_its_metric() -> None:
    study = load_study("gpt")
    linear = replace(study, metrics={"bits": study.metrics["bits_per_byte"]})
    told = on_detection(linear, Noise(0.0031, 0.0, 6, "gpt"), 0.005, "0", 7)
    assert "a seed varies by 0.0031" in told


def test_a_tiny_difference_is_not_laid_to_a_test_set_that_is_not_looked_at() -> None:
    study, noise = load_study("table3"), Noise(0.01, 0.0, 6, "table3")
    assert seeds_for(study, noise, 1e-7) is None
    told = on_detection(study, noise, 1e-7, "0", None)
    assert "takes more than a billion seeds an arm" in told
    assert "test set" not in told


@pytest.fixture
def hours(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Callable[..., float]:
    """What finding a difference costs with two arms: `hours(what one of them is, state of all runs)`."""
    monkeypatch.chdir(tmp_path)
    found: list[Noise | None] = []

    def found_once(*asked: Any) -> Noise | None:
        """That of a recorded study, the same for all of a setting."""
        found[:] = found or [find_noise(*asked)]
        return found[0]

    monkeypatch.setattr("etude.report.power.find_noise", found_once)

    def cost(arm: str, state: str) -> float:
        name = re.sub(r"\W", "", arm)
        file = Path("experiments", name, "study.yaml")
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(f"baseline: base\narms: {{base: [], other: [{arm}]}}\n")
        monkeypatch.setattr("etude.inspect.plan.runs._state", lambda *_: state)
        plan([name, "scale=pocket", "detect=0.05", "--json"])
        told: float = json.loads(capsys.readouterr().out)["detect"]["hours"]
        return told

    return cost


def test_new_seeds_are_trained_though_those_that_are_planned_need_not_be(hours: Callable[..., float]) -> None:
    told = [hours("model.dropout=0.2", state) for state in ("to do", "shared", "finished")]
    assert told == pytest.approx(told[:1] * 3)
    assert told[0] > 0


def test_a_training_that_arms_share_is_paid_once(hours: Callable[..., float]) -> None:
    """Of as many arms, as more comparisons take more seeds."""
    beams, deep = (
        [hours(arm, state) for state in ("to do", "finished")] for arm in ("decoding.beam=8", "model.dropout=0.2")
    )
    assert beams == pytest.approx(beams[:1] * 2)
    assert deep == pytest.approx(deep[:1] * 2)
    assert 0 < beams[1] < 0.8 * deep[1]
    assert hours("data.train_pairs=5000", "finished") == pytest.approx(deep[1], rel=0.1)


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["table3", "detect=x"], "detect=x: say how large a difference"),
        (["table3", "detect=-1"], "detect=-1: say how large a difference"),
        (["table3", "detect="], "detect=: say how large a difference"),
        (["table3", "detect=inf"], "detect=inf: say how large a difference"),
        (["experiment=table3/A1", "detect=1"], "detect= is for the arms of a study"),
        (["detect=1"], "detect= is for the arms of a study"),
    ],
)
def test_what_cannot_be_found_is_one_sentence(words: list[str], told: str) -> None:
    with pytest.raises(UserError, match=told):
        plan(words)
