import json
from pathlib import Path

import pytest

from etude.errors import UserError
from etude.files import write_json
from etude.launch.resources import Need
from etude.store.results_version import RESULTS_VERSION
from etude.store.run_dir import RunDir

from .conftest import Launch


def test_every_job_is_composed_and_frozen_before_the_first_is_run(launch: Launch) -> None:
    launched = launch("experiment=table3/base,table3/A1", "seed=1,2", "scale=small")
    assert launched.names == ["base1", "base2", "A11", "A12"]
    assert [config.model.heads for config in launched.configs] == [4, 4, 1, 1]
    assert {config.model.d_model for config in launched.configs} == {256}
    assert list(launched.configs[2].hydra.overrides.task) == ["experiment=table3/A1", "seed=1", "scale=small"]


def test_a_glob_takes_every_arm_of_a_study(launch: Launch) -> None:
    launched = launch("experiment=glob(table3/D*)")
    assert launched.names == ["D11", "D21", "D31", "D41"]


def test_one_unsound_config_stops_the_sweep_before_anything_is_run(launch: Launch) -> None:
    with pytest.raises(UserError, match="bad luck"):
        launch("seed=1,13")


def test_what_a_sweep_does_with_its_runs_is_set_from_the_command_line(launch: Launch) -> None:
    assert launch("seed=1").how == {"retries": 0, "timeout": None, "grace": 60, "fail_fast": False}
    words = [f"hydra.launcher.{word}" for word in ("retries=2", "timeout=3600", "grace=5.5", "fail_fast=true")]
    assert launch("seed=1", *words).how == {"retries": 2, "timeout": 3600, "grace": 5.5, "fail_fast": True}


def test_gpus_are_those_that_the_environment_of_the_runs_names(launch: Launch) -> None:
    slots = launch("seed=1", "++hydra.job.env_set.CUDA_VISIBLE_DEVICES='3,5'").slots
    assert [slot.gpus for slot in slots.admit([Need(1)] * 3).values()] == [("3",), ("5",)]


def test_slots_are_set_from_the_command_line(launch: Launch) -> None:
    words = [f"hydra.launcher.{word}" for word in ("workers=3", "threads=2", "gpus=[1,GPU-4]", "runs_per_gpu=2")]
    slots = launch("seed=1", *words).slots
    given = [(slot.gpus, slot.threads) for slot in slots.admit([Need(1)] * 5 + [Need(1, "cpu")] * 5).values()]
    assert given == [(("1",), 2), (("GPU-4",), 2), (("1",), 2), (("GPU-4",), 2), *[((), 2)] * 3]


def test_devices_per_run_are_the_devices_of_every_run(launch: Launch) -> None:
    launched = launch("seed=1,2", "hydra.launcher.devices_per_run=2")
    assert [config.trainer.devices for config in launched.configs] == [2, 2]
    assert list(launched.configs[0].hydra.overrides.task) == ["seed=1", "trainer.devices=2"]


def test_options_that_make_no_sense_are_refused_before_anything_is_frozen(launch: Launch) -> None:
    with pytest.raises(UserError, match=r"hydra\.launcher\.workers=lots"):
        launch("seed=13", "hydra.launcher.workers=lots")


def test_runs_of_other_code_are_counted_before_the_first_is_run_with_what_computes_them_again(
    launch: Launch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    config = {"arm": "base", "choices": {}}
    other = RESULTS_VERSION + 1
    for seed, version, files in [(1, other, 2), (2, other, 1), (3, RESULTS_VERSION, 2), (4, RESULTS_VERSION, 1)]:
        run = RunDir(tmp_path / f"base{seed}")
        run.path.mkdir()
        run.config_file.write_text(f"{json.dumps(config)}\n")
        for file in (run.environment_file, run.result_file)[:files]:
            write_json(file, {"results_version": version, "valid": {"perplexity": 2}})
    launch("seed=1,2,3,4")
    told = "of the code, which are kept: 1 finished, 1 half-finished; stale=rerun starts again"
    assert told in capsys.readouterr().err
