"""What the processes of one run tell each other."""

import itertools
import os
import signal
import subprocess
import time

import pytest
import torch

from etude.launch.process import train_command
from etude.trained.checkpoint import newest_checkpoint
from etude.training import processes
from etude.training.processes import Poll

from .conftest import Freeze, in_processes

CPU = torch.device("cpu")


def asked_after(
    poll: Poll, step_seconds: list[float], monkeypatch: pytest.MonkeyPatch, flag: bool = False
) -> list[int]:
    """The steps after which all processes of a run were asked, for steps that took so long; none else is up."""
    now, asked = itertools.accumulate(step_seconds), []

    def all_gather_floats(value: float, device: torch.device) -> list[float]:
        heard.append(value)
        return [value, 0.0]

    heard: list[float] = []
    monkeypatch.setattr(processes.distributed, "is_initialized", lambda: True)
    monkeypatch.setattr(processes, "all_gather_floats", all_gather_floats)
    for step, moment in enumerate(now, start=1):
        monkeypatch.setattr(processes.time, "monotonic", lambda moment=moment: moment)
        heard.clear()
        assert poll(flag, CPU) == (flag and bool(heard))
        if heard:
            asked.append(step)
    return asked


@pytest.fixture
def poll(monkeypatch: pytest.MonkeyPatch) -> Poll:
    monkeypatch.setattr(processes.time, "monotonic", lambda: 0.0)
    return Poll(seconds=1.0)


@pytest.mark.parametrize(("gpus", "sent_by"), [(False, {"cpu": "gloo"}), (True, {"cpu": "gloo", "cuda": "nccl"})])
def test_what_is_on_the_processor_is_sent_where_there_are_gpus_too(
    gpus: bool, sent_by: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: gpus)
    monkeypatch.setattr(torch.distributed, "is_nccl_available", lambda: True)
    understood = torch.distributed.distributed_c10d.BackendConfig(torch.distributed.Backend(processes._backends()))
    assert sent_by.items() <= understood.get_device_backend_map().items()


def test_a_process_alone_is_told_at_once_and_asks_nobody(poll: Poll) -> None:
    assert [poll(flag, CPU) for flag in (False, True, False)] == [False, True, False]


def test_several_processes_ask_each_other_about_once_a_second(poll: Poll, monkeypatch: pytest.MonkeyPatch) -> None:
    """A hundred steps a second were a hundred askings."""
    asked = asked_after(poll, [0.01] * 2000, monkeypatch)
    assert 20 <= len(asked) <= 30
    assert {later - earlier for earlier, later in itertools.pairwise(asked[10:])} <= {99, 100}


def test_steps_that_take_longer_than_a_second_are_all_asked_after(poll: Poll, monkeypatch: pytest.MonkeyPatch) -> None:
    assert asked_after(poll, [2.0] * 5, monkeypatch) == [1, 2, 3, 4, 5]


def test_steps_that_become_slow_are_asked_after_as_often_soon(poll: Poll, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = asked_after(poll, [0.1] * 100 + [2.0] * 40, monkeypatch)
    assert asked[-10:] == [*range(131, 141)]


def test_a_flag_that_is_up_in_one_process_is_seen_at_the_next_asking(
    poll: Poll, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = asked_after(poll, [0.1] * 50, monkeypatch, flag=True)
    assert 5 <= len(asked) <= 12


@pytest.mark.slow
def test_a_run_of_two_processes_that_is_asked_to_stop_ends_in_both_and_goes_on(runs: Freeze) -> None:
    """torchrun hands the signal to each of them, and neither may wait for the other's gradients."""
    run = runs("stopped", "budget.max_steps=400", "budget.val_every=400", "trainer.devices=2")
    environment = os.environ | {"OMP_NUM_THREADS": "1"}
    begun = subprocess.Popen(train_command(run), stderr=subprocess.PIPE, text=True, env=environment)
    try:
        deadline = time.monotonic() + 60
        while (run.progress() or {}).get("step", 0) < 2 and begun.poll() is None and time.monotonic() < deadline:
            time.sleep(0.02)
        begun.send_signal(signal.SIGTERM)
        said = begun.communicate(timeout=60)[1]
    finally:
        begun.kill()
    assert not run.finished
    step, *_ = newest_checkpoint(run.checkpoint)
    assert 2 <= step < 400, said
    done = in_processes(run)
    assert run.finished, done.stderr
    assert done.stderr.count(f"going on from step {step} of 400") == 2
