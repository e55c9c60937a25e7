import logging
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import hydra
import pytest
from hydra.core.global_hydra import GlobalHydra
from omegaconf import DictConfig

import etude.config.identity
import etude.sweep.slots
from etude.config.resolvers import register
from etude.errors import UserError
from etude.paths import shipped
from etude.rundir import RunDir


@dataclass
class Launched:
    """What a multirun froze, and what it would have run."""

    configs: list[DictConfig] = field(default_factory=list)
    runs: list[RunDir] = field(default_factory=list)
    how: dict[str, Any] = field(default_factory=dict)


Launch = Callable[..., Launched]


@pytest.fixture
def launch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Launch]:
    """Types `etude train -m WORDS` in an empty folder, with nothing run at the end of it."""
    launched = Launched()

    def freeze(config: DictConfig) -> RunDir:
        if config.seed == 13:
            raise UserError("seed=13 brings bad luck")
        launched.configs.append(config)
        return RunDir(tmp_path / f"{config.arm}{config.seed}")

    def run_side_by_side(runs: Sequence[RunDir], **how: Any) -> None:
        launched.runs, launched.how = list(runs), how

    def task(config: DictConfig) -> None:
        raise AssertionError("in a sweep each run is a process of its own")

    def typed(*words: str) -> Launched:
        monkeypatch.setattr(sys, "argv", ["etude train", "-m", *words])
        hydra.main(config_path=str(shipped("conf")), config_name="train", version_base="1.3")(task)()
        return launched

    register()
    monkeypatch.setattr(etude.config.identity, "freeze", freeze)
    monkeypatch.setattr(etude.sweep.slots, "run_side_by_side", run_side_by_side)
    monkeypatch.setattr(logging.getLogger(), "handlers", [])
    monkeypatch.setenv("HYDRA_FULL_ERROR", "1")
    monkeypatch.chdir(tmp_path)
    yield typed
    GlobalHydra.instance().clear()


def test_every_job_is_composed_and_frozen_before_the_first_is_run(launch: Launch) -> None:
    launched = launch("experiment=table3/base,table3/A1", "seed=1,2", "scale=small")
    assert [run.path.name for run in launched.runs] == ["base1", "base2", "A11", "A12"]
    assert [config.model.heads for config in launched.configs] == [8, 8, 1, 1]
    assert {config.model.d_model for config in launched.configs} == {256}
    assert list(launched.configs[2].hydra.overrides.task) == ["experiment=table3/A1", "seed=1", "scale=small"]


def test_a_glob_takes_every_arm_of_a_study(launch: Launch) -> None:
    launched = launch("experiment=glob(table3/D*)")
    assert [run.path.name for run in launched.runs] == ["D11", "D21", "D31", "D41"]


def test_one_unsound_config_stops_the_sweep_before_anything_is_run(launch: Launch) -> None:
    with pytest.raises(UserError, match="bad luck"):
        launch("seed=1,13")


def test_slots_are_set_from_the_command_line(launch: Launch) -> None:
    assert launch("seed=1", "hydra.launcher.workers=3", "hydra.launcher.threads=2").how == {"workers": 3, "threads": 2}


def test_slots_that_make_no_sense_are_refused(launch: Launch) -> None:
    with pytest.raises(UserError, match=r"hydra\.launcher\.workers=lots"):
        launch("seed=1", "hydra.launcher.workers=lots")
