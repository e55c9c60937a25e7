import os
from pathlib import Path
from typing import Any

import pytest
import yaml

import etude.launch.options
from etude.errors import UserError
from etude.launch.options import Options, visible_gpus
from etude.launch.resources import Need
from etude.paths import shipped


def options(**changed: Any) -> Options:
    """The shipped ones, with some changed."""
    shipped_ones = yaml.safe_load((shipped("conf") / "hydra/launcher/slots.yaml").read_text())
    return Options(**{key: value for key, value in shipped_ones.items() if not key.startswith("_")} | changed)


@pytest.fixture(autouse=True)
def machine(monkeypatch: pytest.MonkeyPatch) -> None:
    """One of six cores and three GPUs."""
    monkeypatch.setattr(etude.launch.options, "usable_cores", lambda: 6)
    monkeypatch.setattr(etude.launch.options, "visible_gpus", lambda: ("0", "1", "2"))


def at_once(chosen: Options, accelerator: str = "auto") -> list[tuple[tuple[str, ...], int]]:
    """The GPUs and the threads of the runs that start when many wait."""
    return [(slot.gpus, slot.threads) for slot in chosen.slots().admit([Need(1, accelerator)] * 20).values()]


def test_by_default_a_run_has_a_gpu_and_its_share_of_the_cores() -> None:
    assert at_once(options()) == [(("0",), 2), (("1",), 2), (("2",), 2)]


def test_runs_on_the_processor_are_as_many_as_the_cores_can_feed() -> None:
    assert at_once(options(), "cpu") == [((), 1)] * 6
    assert at_once(options(gpus=0)) == [((), 1)] * 6
    assert at_once(options(threads=4), "cpu") == [((), 4)]
    assert at_once(options(threads=10), "cpu") == [((), 10)]
    assert at_once(options(workers=2, threads=1), "cpu") == [((), 1)] * 2


@pytest.mark.parametrize(
    ("gpus", "ids"), [(2, ["0", "1"]), ([2], ["2"]), (["MIG-7", 5], ["MIG-7", "5"]), ("auto", ["0", "1", "2"])]
)
def test_gpus_are_counted_or_named(gpus: Any, ids: list[str]) -> None:
    assert [slot[0] for slot in at_once(options(gpus=gpus))] == [(gpu,) for gpu in ids]


def test_gpus_that_somebody_else_was_given_are_not_handed_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "0,1,2")
    assert at_once(options(gpus=[2]))[0][0] == ("2",)
    with pytest.raises(
        UserError, match=r"hydra\.launcher\.gpus: 3 is not in CUDA_VISIBLE_DEVICES, .* 0, 1, 2: say auto"
    ):
        options(gpus=[1, 3]).slots()


@pytest.mark.parametrize("gpus", [0, []])
def test_no_gpus_are_none_even_where_there_are_some(gpus: Any) -> None:
    assert {slot[0] for slot in at_once(options(gpus=gpus))} == {()}


def test_more_gpus_than_there_are_must_be_named() -> None:
    with pytest.raises(UserError, match=r"hydra\.launcher\.gpus=4, but 3 can be seen here"):
        options(gpus=4).slots()


@pytest.mark.parametrize(
    ("program", "told"),
    [
        ("echo 'Failed to initialize NVML: Driver/library version mismatch'; exit 18", "Failed to initialize NVML"),
        ("exec sleep 60", "no answer in 0.2 seconds"),
    ],
)
def test_a_driver_that_does_not_work_is_told_and_not_taken_for_none(
    program: str, told: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    driver = tmp_path / "nvidia-smi"
    driver.write_text(f"#!/bin/sh\n{program}\n")
    driver.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    monkeypatch.setattr(etude.launch.options, "_PATIENCE", 0.2 if "sleep" in program else 10.0)
    assert visible_gpus() == ()
    [message] = caplog.messages
    assert message.startswith(f"nvidia-smi: {told}")
    assert message.endswith("runs get no GPU of this machine (hydra.launcher.gpus=[0] names one)")


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("workers", 0),
        ("workers", "many"),
        ("workers", 2.5),
        ("workers", True),
        ("workers", None),
        ("threads", 0),
        ("gpus", "all"),
        ("gpus", -1),
        ("gpus", None),
        ("gpus", [0, "0"]),
        ("runs_per_gpu", 0),
        ("runs_per_gpu", 0.5),
        ("devices_per_run", 0),
        ("devices_per_run", "auto"),
        ("retries", -1),
        ("retries", None),
        ("timeout", 0),
        ("timeout", "1h"),
        ("timeout", float("nan")),
        ("grace", None),
        ("grace", float("inf")),
        ("fail_fast", "yes"),
        ("fail_fast", 1),
    ],
)
def test_options_that_make_no_sense_are_refused_by_key(key: str, value: Any) -> None:
    with pytest.raises(UserError, match=rf"hydra\.launcher\.{key}="):
        options(**{key: value}).slots()


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"qos": "high"}, "hydra.launcher.qos: this launcher has no such key, another hydra/launcher may"),
        ({"retrys": 1}, "hydra.launcher.retrys: .*did you mean retries"),
        ({}, "hydra.launcher.workers is missing: it must be auto or a whole number, 1 or more"),
    ],
)
def test_a_key_of_another_launcher_or_one_that_is_missing_is_refused_by_name(given: dict[str, Any], told: str) -> None:
    with pytest.raises(UserError, match=told):
        Options.of(given)
