"""One run of a sweep, as a process of its own."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from enum import StrEnum
from typing import Any

from etude.config.studies import value_at
from etude.rundir import RunDir

Command = Callable[[RunDir], Sequence[str]]

_THREADS = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMEXPR_NUM_THREADS")
_LAST_LINES = 15


class State(StrEnum):
    """Where a run stands in its sweep."""

    SKIPPED = "skipped"  # it was finished before the sweep began
    WAITING = "waiting"
    RUNNING = "running"
    FINISHED = "finished"
    FAILED = "failed"
    STOPPED = "stopped"  # the sweep was interrupted


def train_command(run_dir: RunDir) -> list[str]:
    """What trains, evaluates and records one frozen run."""
    return [sys.executable, "-m", "etude.train", str(run_dir.path)]


class Job:
    """One run: its process, and what became of it."""

    def __init__(self, run_dir: RunDir) -> None:
        self.run_dir = run_dir
        self.state = State.SKIPPED if run_dir.finished else State.WAITING
        self.reason = ""  # why it failed
        self.started = self.ended = 0.0  # seconds since the epoch
        self.max_steps, self.cost = _size(run_dir.config())
        self._process: subprocess.Popen[bytes] | None = None
        self._log_start = 0

    @property
    def name(self) -> str:
        """Study, arm and seed, as its directory says."""
        study, arm, run = self.run_dir.path.parts[-3:]
        return f"{study}/{arm} {run.split('-')[0].replace('seed', 'seed ')}"

    def start(self, command: Sequence[str], threads: int) -> None:
        """Start the process, in a session of its own: Ctrl-C reaches the sweep, and the sweep decides."""
        self.started = time.time()
        self.state = State.RUNNING
        environment = os.environ | {name: str(threads) for name in _THREADS} | {"PYTHONUNBUFFERED": "1"}
        try:
            with self.run_dir.log_file.open("ab") as log:
                self._log_start = log.tell()
                self._process = subprocess.Popen(
                    command,
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=subprocess.STDOUT,
                    env=environment,
                    start_new_session=True,
                )
        except OSError as error:
            self._end(State.FAILED, f"could not be started: {error}")

    def poll(self) -> None:
        """Look whether the process has ended, and how: only a result is success, a terminated trainer exits with 0."""
        if self.state is not State.RUNNING or self._process is None or (code := self._process.poll()) is None:
            return
        if self.run_dir.finished:
            self._end(State.FINISHED)
            return
        self.signal(signal.SIGKILL)  # whatever the dead process left behind
        how = f"killed by {signal.Signals(-code).name}" if code < 0 else f"exit status {code}, without a result"
        self._end(State.FAILED, how)

    def signal(self, number: signal.Signals) -> None:
        """Send a signal to the process and all that it started."""
        if self._process is not None:
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(self._process.pid, number)

    @property
    def alive(self) -> bool:
        """Whether the process has not ended yet."""
        return self._process is not None and self._process.poll() is None

    def stop(self) -> None:
        """End the process and all that it started, at once."""
        self.signal(signal.SIGKILL)
        if self._process is not None:
            self._process.wait()
        self._end(State.FINISHED if self.run_dir.finished else State.STOPPED)

    def progress(self) -> dict[str, Any]:
        """What this process last said of itself; nothing while only an earlier one has spoken."""
        try:
            fresh = self.run_dir.progress_file.stat().st_mtime >= self.started
        except OSError:
            fresh = False
        return (self.run_dir.progress() or {}) if fresh else {}

    def last_lines(self) -> str:
        """The end of what this process printed; an earlier one's words in the same log are left out."""
        try:
            with self.run_dir.log_file.open("rb") as log:
                end = log.seek(0, os.SEEK_END)
                log.seek(max(self._log_start, end - 16384))
                text = log.read().decode("utf-8", errors="replace")
        except OSError:
            return ""
        lines = [line.rsplit("\r", 1)[-1].rstrip() for line in text.replace("\r\n", "\n").split("\n")]
        return "\n".join([line for line in lines if line][-_LAST_LINES:])

    def failure(self) -> str:
        """What went wrong and where to read on, with the last lines of the log."""
        said = "".join(f"\n    {line}" for line in self.last_lines().splitlines()) or "\n    (it printed nothing)"
        return f"{self.name} failed: {self.reason}; the end of {self.run_dir.log_file}:{said}"

    def _end(self, state: State, reason: str = "") -> None:
        self.state, self.reason, self.ended = state, reason, time.time()


def _size(config: dict[str, Any]) -> tuple[int, float]:
    """Steps, and a crude cost to begin with the longest runs: the weights of the layers times the steps."""
    names = ("model.n_layers", "model.d_model", "model.d_ff", "budget.max_steps")
    layers, d_model, d_ff, steps = (value_at(config, name) or 0 for name in names)
    return steps, layers * d_model * (2 * d_model + d_ff) * steps
