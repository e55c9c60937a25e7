import os
import signal
import subprocess
import time
from collections.abc import Iterator

import pytest

from etude.launch.interrupts import interrupts

LONG = 60.0  # seconds that no test waits


@pytest.fixture(autouse=True)
def nothing_ignored() -> Iterator[None]:
    """Behind `nohup` or `&` some signals are ignored, and none of ours to heed."""
    signals = (signal.SIGHUP, signal.SIGINT, signal.SIGTERM)
    before = {number: signal.signal(number, signal.default_int_handler) for number in signals}
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


def waited(seconds: float, before: float) -> bool:
    return time.monotonic() - before >= seconds


def test_the_end_of_a_child_ends_the_waiting() -> None:
    began = time.monotonic()
    with interrupts() as heard:
        child = subprocess.Popen(["sleep", "0.2"])
        heard.wait(LONG)
        assert child.poll() == 0
    assert not waited(LONG, began)


def test_what_happened_before_the_waiting_is_not_missed() -> None:
    began = time.monotonic()
    with interrupts() as heard:
        subprocess.run(["true"], check=True)
        heard.wait(LONG)
        os.kill(os.getpid(), signal.SIGHUP)
        heard.wait(LONG)
        heard.wait(0)
    assert heard.caught == [signal.SIGHUP]
    assert not waited(LONG, began)


def test_nothing_ends_the_waiting_in_the_end() -> None:
    with interrupts() as heard:
        heard.wait(0.01)
    assert heard.caught == []


def test_a_signal_that_was_ignored_is_still_ignored(monkeypatch: pytest.MonkeyPatch) -> None:
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with interrupts() as heard:
            os.kill(os.getpid(), signal.SIGHUP)
            assert heard.caught == []
    finally:
        signal.signal(signal.SIGHUP, before)


def test_only_what_comes_after_the_first_is_impatience_and_a_hang_up_never_is() -> None:
    with interrupts() as heard:
        os.kill(os.getpid(), signal.SIGTERM)
        os.kill(os.getpid(), signal.SIGHUP)
        assert not heard.is_repeated(1)
        os.kill(os.getpid(), signal.SIGINT)
        assert heard.is_repeated(1)
