"""A sweep with `until=decided` adds seeds to the arms of a study that are not decided, and to no other."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml
from hydra.core.utils import JobReturn
from hydra.utils import instantiate

from etude.config.compose import compose
from etude.config.compose_cache import ConfigCache
from etude.config.freeze import freeze_all
from etude.errors import UserError
from etude.search.sweep_file import planned_runs, saving_of, sweep_overrides
from etude.study.study import load_study

SEEDS = {"least": 2, "most": 5, "until": "decided"}
STUDY: dict[str, Any] = {
    "baseline": "base",
    "arms": {"base": [], "worse": ["model.heads=1"], "same": ["model.heads=4"], "doubtful": ["model.heads=2"]},
    "agreement": {"large": 0.1, "margin": 0.05},
    "pilots": [2],
    "seeds": SEEDS,
}
AWAY = {"base": 0.0, "worse": 0.6, "same": 0.0, "doubtful": 0.05}  # nats


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working directory with the study `mine`."""
    (tmp_path / "experiments" / "mine").mkdir(parents=True)
    (tmp_path / "experiments" / "mine" / "study.yaml").write_text(yaml.safe_dump(STUDY))
    monkeypatch.chdir(tmp_path)
    return tmp_path


class Launcher:
    """Finishes every run, with a perplexity that its arm and seed give; the last `late` of them later."""

    def __init__(self, late: int) -> None:
        self.late = late
        self.launched: list[list[str]] = []

    def launch(self, job_overrides: Sequence[Sequence[str]], initial_job_idx: int) -> list[JobReturn]:
        assert initial_job_idx == sum(map(len, self.launched))
        runs = freeze_all(job_overrides, ConfigCache())
        for run in runs[: len(runs) - self.late]:
            arm, seed = run.path.parent.name, run.config()["seed"]
            luck = np.random.default_rng([seed, *arm.encode()]).normal(0, 0.03)
            run.write_result({"test": {"perplexity": float(np.exp(1 + AWAY[arm] + luck))}, "finished": True})
        self.launched.append([f"{run.path.parent.name} {run.config()['seed']}" for run in runs])
        return [JobReturn(working_dir=str(run.path)) for run in runs]


def swept(late: int = 0) -> list[list[str]]:
    """Sweep `mine` and return what was launched together."""
    overrides = sweep_overrides("mine", ["until=decided"])
    config = compose([word for word in overrides if word.startswith("hydra")])
    sweeper = instantiate(config.hydra.sweeper)
    sweeper.config, sweeper.launcher = config, (launcher := Launcher(late))
    sweeper.sweep([word for word in overrides if not word.startswith("hydra")])
    return launcher.launched


def test_only_what_is_not_decided_gets_further_seeds_and_the_baseline_with_it(folder: Path) -> None:
    first, *later = swept()
    assert sorted(first) == sorted(f"{arm} {seed}" for arm in STUDY["arms"] for seed in (1, 3))  # 2 is a pilot
    assert [launched[0] for launched in later] == [f"base {seed}" for seed in (4, 5, 6)[: len(later)]]
    further = {arm: sum(name.split()[0] == arm for each in later for name in each) for arm in STUDY["arms"]}
    assert further["worse"] <= 1
    assert further["doubtful"] == further["base"] == 3


def test_what_a_launcher_has_only_submitted_is_waited_for(folder: Path, caplog: pytest.LogCaptureFixture) -> None:
    assert len(swept(late=1)) == 1
    assert "typed again when they are, this adds seeds where needed" in caplog.text


def test_a_plan_tells_what_it_costs_at_most(folder: Path) -> None:
    runs = planned_runs("mine", ["until=decided"])
    assert len({*map(tuple, runs)}) == len(runs) == 4 * 5
    saving = saving_of("mine", ["until=decided"], runs)
    assert saving
    assert saving.share is None


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["until=done"], "say until=decided"),
        (["until=decided", "seed=1,2"], "leave seed out here"),
        (["until=decided", "tuned=true"], "leave out tuned"),
    ],
)
def test_what_does_not_go_with_it_is_answered(words: list[str], told: str, folder: Path) -> None:
    with pytest.raises(UserError, match=told):
        planned_runs("mine", words)


def test_a_study_of_a_fixed_number_of_seeds_says_what_to_write() -> None:
    with pytest.raises(UserError, match=r"in its study\.yaml say  seeds: \{least: 2, most: 8, until: decided\}"):
        planned_runs("table3", ["until=decided"])


@pytest.mark.parametrize(
    ("seeds", "told"),
    [
        (SEEDS | {"until": "sure"}, "seeds must be a number, or such as"),
        ({"least": 2, "most": 8}, "seeds must be a number, or such as"),
        (SEEDS | {"least": 1}, "from one seed nothing can be decided"),
        (SEEDS | {"most": 2}, "most is more than least"),
        (SEEDS | {"most": 2.5}, "must be whole numbers"),
    ],
)
def test_seeds_that_make_no_sense_are_refused(seeds: dict[str, Any], told: str, folder: Path) -> None:
    (folder / "experiments" / "mine" / "study.yaml").write_text(yaml.safe_dump(STUDY | {"seeds": seeds}))
    with pytest.raises(UserError, match=told):
        load_study("mine")
