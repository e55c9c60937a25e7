"""Which signals a training heeds."""

import signal
from types import SimpleNamespace
from typing import Any

import pytest

from etude.training.stopping import StopWhenAsked


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGHUP])
def test_a_signal_that_was_ignored_at_the_start_stays_ignored_as_in_a_sweep(number: signal.Signals) -> None:
    """So do `nohup`, and a script's `&`."""
    nobody: Any = SimpleNamespace()
    before = signal.signal(number, signal.SIG_IGN)
    callback = StopWhenAsked(nobody, val_every=1)
    try:
        callback.on_train_start(nobody, nobody)
        assert signal.getsignal(number) == signal.SIG_IGN
        assert signal.getsignal(signal.SIGTERM) == callback._on_signal
        callback.on_exception(nobody, nobody, KeyboardInterrupt())
    finally:
        signal.signal(number, before)
