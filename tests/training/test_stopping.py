"""Which signals a training heeds, and which checkpoints it writes."""

import signal
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from etude.errors import UserError
from etude.store.run_dir import RunDir
from etude.store.run_state import State, Stop, write_stop
from etude.training.stopping import StopWhenAsked


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGHUP])
def test_a_signal_that_was_ignored_at_the_start_stays_ignored_as_in_a_sweep(
    number: signal.Signals, tmp_path: Path
) -> None:
    """So do `nohup`, and a script's `&`."""
    nobody: Any = SimpleNamespace(device=None)
    before = signal.signal(number, signal.SIG_IGN)
    callback = StopWhenAsked(RunDir(tmp_path), nobody, val_every=1)
    try:
        callback.on_train_start(nobody, nobody)
        assert signal.getsignal(number) == signal.SIG_IGN
        assert signal.getsignal(signal.SIGTERM) == callback._on_signal
        callback.on_exception(nobody, nobody, KeyboardInterrupt())
    finally:
        signal.signal(number, before)


def test_a_stop_that_was_read_once_is_wanted_until_all_processes_have_agreed(tmp_path: Path) -> None:
    """They agree about once a second, at another moment than the file is read."""
    nobody: Any = SimpleNamespace(global_step=8)
    callback = StopWhenAsked(run := RunDir(tmp_path), nobody, val_every=100)
    write_stop(run, Stop(7, State.PAUSED))
    assert [callback._wanted(nobody) for _ in range(3)] == [True] * 3


def test_the_state_of_a_callback_that_could_not_be_read_again_is_refused_before_it_is_written() -> None:
    nobody: Any = SimpleNamespace()
    stop = StopWhenAsked(nobody, nobody, val_every=1)
    stop.on_save_checkpoint(nobody, nobody, {"callbacks": {"Mine": {"best": 1.5}}})
    told = r"the state of callbacks\['Mine'\]\['best'\] is a numpy\.float64.*keep numbers"
    with pytest.raises(UserError, match=told):
        stop.on_save_checkpoint(nobody, nobody, {"callbacks": {"Mine": {"best": np.float64(2)}}})
