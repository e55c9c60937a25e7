"""One run of a sweep: its process, its state and its outcome."""

import os
import signal
import subprocess
import time
from collections.abc import Sequence
from contextlib import suppress
from functools import cached_property
from math import ceil, inf
from typing import Any

from etude.errors import UserError
from etude.files import write_text
from etude.launch.process import Command, describe_exit, start_supervised
from etude.processor.threads import wait_briefly
from etude.store.divergence import divergence
from etude.store.lock import Busy, is_held
from etude.store.log import last_lines
from etude.store.run_dir import RunDir
from etude.store.run_state import (
    Progress,
    State,
    StoppedBySearch,
    read_progress,
    read_stop,
    state_of_unfinished,
)
from etude.study.metrics import Metric
from etude.study.study import metrics_of

GRACE = 60.0  # seconds that a run has to write its checkpoint when it is asked to stop

_THREADS = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMEXPR_NUM_THREADS")
_MISTAKE = UserError.exit_status  # a mistake of the user's: a retry would fail again
_PATIENCE = 5.0  # seconds for killed processes to end


class Job:
    """One run of a sweep: its process, its state and its outcome.

    Args:
        run_dir: the directory of the frozen run.
        retries: how often it is tried again after a failure.
        config: what its `config.yaml` said when its resources were chosen; None: what it says now.

    Raises:
        UserError: the run is finished, but its result is truncated.
        OSError: the run is not finished, and its config cannot be read.
    """

    def __init__(self, run_dir: RunDir, retries: int = 0, config: str | None = None) -> None:
        self.run_dir = run_dir
        self.state = State.WAITING
        if run_dir.finished:
            self.state = State.DIVERGED if self.divergence else State.SKIPPED
        if config is None and not run_dir.finished:
            config = run_dir.config_file.read_text(encoding="utf-8")
        self.launched_config = config or ""
        self.reason = ""  # why it failed
        self.started = self.ended = 0.0  # seconds since the epoch; their difference is that of the monotonic clock
        self._began = 0.0  # by the monotonic clock
        self.retries = retries
        self.attempts = 0
        self.gpus: tuple[str, ...] = ()  # ids of the GPUs it runs on
        self.stopping = False  # whether it has been asked to stop
        self.name_suffix = ""  # overrides that distinguish it from other runs of the same study, arm and seed
        self._process: subprocess.Popen[bytes] | None = None
        self._code: int | None = None
        self._log_start = 0  # offset in the log at which the output of its process begins
        self._timeout, self._deadline = inf, inf  # in seconds, and as a time of the monotonic clock

    @property
    def name(self) -> str:
        """Study, arm and seed, and the overrides that distinguish it from other runs of the sweep."""
        return f"{self.stem} {self.name_suffix}".rstrip()

    @property
    def stem(self) -> str:
        """Study, arm and seed."""
        study, arm, run = self.run_dir.path.parts[-3:]
        return f"{study}/{arm} {run.split('-')[0].replace('seed', 'seed ')}"

    @cached_property
    def config(self) -> dict[str, Any]:
        """The frozen config."""
        return self.run_dir.config()

    @cached_property
    def result(self) -> dict[str, Any]:
        """The result of the finished run."""
        return self.run_dir.result()

    @cached_property
    def metrics(self) -> list[Metric]:
        """The metrics that its study shows."""
        task = self.config.get("choices", {}).get("task", "translation")
        return [*metrics_of(self.run_dir.path.parts[-3], task).values()]

    @property
    def divergence(self) -> str | None:
        """How the finished run diverged; None if it did not."""
        return divergence(self.result)

    @property
    def outcome(self) -> State:
        """The state of a run that has a result."""
        return State.DIVERGED if self.divergence else State.FINISHED

    @property
    def retriable(self) -> bool:
        """Whether it has failed, has retries left, and did not fail because of a mistake of the user's."""
        return self.state is State.FAILED and self.attempts <= self.retries and self._code != _MISTAKE

    @property
    def alive(self) -> bool:
        """Whether its process, or any process that it started, is still running."""
        return self._process is not None and self._process.poll() is None

    @property
    def trains(self) -> bool:
        """Whether its training is still to be completed, by this run or by another that shares it."""
        return self.run_dir.own_training.trained is None

    @property
    def waits_for_training(self) -> bool:
        """Whether another process trains what this run needs."""
        with suppress(OSError):  # the run's own process will report what is wrong with the directory
            return self.trains and is_held(self.run_dir.own_training.lock_file)
        return False

    def refresh_state(self) -> None:
        """Update the state of a run that waits or is elsewhere: another process may work on it or have ended it."""
        elsewhere = self.waits_for_training
        with suppress(OSError):
            elsewhere = elsewhere or is_held(self.run_dir.lock_file)
        # The locks are checked before the result: the other process may finish in between.
        self.state = self.outcome if self.run_dir.finished else State.ELSEWHERE if elsewhere else State.WAITING
        if self.state is State.WAITING and read_stop(self.run_dir):
            unfinished, _, _ = state_of_unfinished(self.run_dir, held=False)
            self.state = unfinished if unfinished in (State.PAUSED, State.PRUNED) else State.WAITING

    def start(
        self,
        command: Command,
        threads: int,
        gpus: Sequence[str] | None = None,
        *,
        timeout: float | None = None,
        grace: float = GRACE,
    ) -> None:
        """Start the process of the run, with `threads` for each of its processes.

        It sees the GPUs whose ids are given; with None, those that this process sees. Times are in seconds.
        """
        self.state, self.started, self.ended = State.RUNNING, time.time(), 0.0
        self._began = time.monotonic()
        self._process, self._code, self.reason, self.stopping = None, None, "", False
        self.gpus = tuple(gpus or ())
        self.attempts += 1
        self._timeout = inf if timeout is None else timeout
        self._deadline = time.monotonic() + self._timeout
        environment = os.environ | dict.fromkeys(_THREADS, str(threads)) | {"PYTHONUNBUFFERED": "1"}
        wait_briefly(environment)
        environment["PYTHONSAFEPATH"] = "1"  # no file in the working directory may shadow a library
        environment["TORCH_ELASTIC_SHUTDOWN_TIMEOUT"] = str(ceil(grace))  # seconds that torchrun gives its workers
        if gpus is not None:
            environment["CUDA_VISIBLE_DEVICES"] = ",".join(gpus)
            if "CUDA_VISIBLE_DEVICES" not in os.environ:  # nvidia-smi's numbers; CUDA's own begin with the fastest
                environment.setdefault("CUDA_DEVICE_ORDER", "PCI_BUS_ID")
        log = self.run_dir.log_file
        try:
            # Another command may have frozen the run again for other devices; the slot was chosen for these.
            if self.launched_config != self.run_dir.config_file.read_text(encoding="utf-8"):
                write_text(self.run_dir.config_file, self.launched_config)
            self._log_start = log.stat().st_size if log.exists() else 0
            self._process = start_supervised(command(self.run_dir), log=log, environment=environment, grace=grace)
        except (OSError, UserError) as error:
            self._end(State.FAILED, f"could not be started: {error}")

    def poll(self) -> None:
        """Check whether the process has ended, and how. Only a result is success: a terminated trainer exits with 0."""
        if self.state is not State.RUNNING or self._process is None:
            return
        self._code = self._process.poll()
        if self._code is not None and self.run_dir.finished:
            self._end(self.outcome)
        elif self._code is not None:
            self._code = last_lines(self.run_dir.log_file, self._log_start)[1] or self._code
            if self._code == StoppedBySearch.exit_status:
                stop = read_stop(self.run_dir)  # none: meanwhile another process of the search wants the run to go on
                self._end(stop.state if stop else State.PAUSED)
            elif self._code == Busy.exit_status:
                self.attempts -= 1  # it did not start training, so this was no attempt
                self._end(State.ELSEWHERE, "another process is training it")
            else:
                self._end(State.FAILED, self.reason or describe_exit(self._code))
        elif time.monotonic() > self._deadline and not self.stopping:
            self.reason = f"took longer than {self._timeout:g} s, the timeout"
            self.signal(signal.SIGTERM)

    def signal(self, number: signal.Signals) -> None:
        """Signal the supervisor: SIGTERM asks the run to stop and kills it after the grace; SIGUSR1 kills it now."""
        self.stopping = True
        if self._process is not None:
            self._process.send_signal(number)

    def stop(self) -> None:
        """Kill the process and all that it started; give up after some seconds on any that the kernel cannot end."""
        self.signal(signal.SIGUSR1)
        if self._process is not None:
            try:
                self._process.wait(_PATIENCE)
            except subprocess.TimeoutExpired:
                self._process.kill()
        self._end(self.outcome if self.run_dir.finished else State.STOPPED)

    def progress(self) -> Progress:
        """Read the progress that this process last recorded."""
        return read_progress(self.run_dir, self.started)

    def failure(self) -> str:
        """Describe the failure, with the last lines of the log and its path."""
        lines, _ = last_lines(self.run_dir.log_file, self._log_start)
        said = "".join(f"\n    {line}" for line in lines or ["(it printed nothing)"])
        attempts = f" (attempt {self.attempts})" if self.attempts > 1 else ""
        return f"{self.name} failed{attempts}: {self.reason}; the end of {self.run_dir.log_file}:{said}"

    def _end(self, state: State, reason: str = "") -> None:
        self.state, self.reason = state, reason
        self.ended = self.started + time.monotonic() - self._began
