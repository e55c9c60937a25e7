"""Run a run on another machine: the callable that a worker there executes, and the outcome that it returns.

Both machines share the directory of the run, with config, log, progress, checkpoints and result.
"""

import os
import signal
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from etude.files import look_again
from etude.launch.job import GRACE, Job
from etude.launch.process import Command, train_command
from etude.launch.sweep import jobs_of
from etude.store.run_dir import RunDir
from etude.store.run_state import State

_PAUSE = 0.1  # seconds between checks of the process
_NFS_CACHE = 90.0  # seconds that NFS may remember what is in a folder: acdirmax is 60 where nobody has set it


class Outcome(NamedTuple):
    """How a run ended on its machine."""

    started: float  # seconds since the epoch
    ended: float
    reason: str  # why it has no result; empty if it has one
    state: State = State.FAILED  # the one of these three: elsewhere, paused or pruned; any other is told by the result


@dataclass
class RemoteRun:
    """Trains a frozen run in a separate process on the machine where it is called."""

    run_dir: RunDir  # with an absolute path
    threads: int  # per process
    gpus: Sequence[str] | None = None  # ids of the visible GPUs; None: those that the caller sees
    grace: float = GRACE  # seconds between asking it to stop and killing it
    command: Command = train_command
    folder: Path = field(default_factory=Path.cwd)  # working directory of the sweep, with the user's modules and files
    config: str | None = None  # what `config.yaml` said when the resources were asked for; None: what it says now
    _job: Job | None = field(default=None, init=False, repr=False)
    stopping: bool = field(default=False, init=False, repr=False)  # whether it has been asked to stop

    def __call__(self) -> Outcome:
        """Train until the run has ended; if this is interrupted, stop the run first."""
        os.chdir(self.folder)
        job = self._job = Job(self.run_dir, config=self.config)
        deadline = time.monotonic() + self.grace
        try:
            job.refresh_state()
            while job.state is State.ELSEWHERE and not self.stopping and time.monotonic() < deadline:
                time.sleep(_PAUSE)  # an earlier attempt whose worker died may be writing its checkpoint
                job.refresh_state()
            if self.stopping:
                return Outcome(time.time(), time.time(), "it was asked to stop before it had started")
            if job.state is State.WAITING:
                job.start(self.command, self.threads, self.gpus, grace=self.grace)
            while job.state is State.RUNNING:
                self._pass_on()
                time.sleep(_PAUSE)
                job.poll()
        finally:
            self.stop()
        return Outcome(job.started, job.ended, job.reason, job.state)

    def ask_to_stop(self) -> None:
        """Ask the run to write its checkpoint and end, or not to begin; later calls have no effect."""
        self.stopping = True

    def stop(self) -> None:
        """Ask the run to stop and wait until it has ended; it is killed after the grace period."""
        if self._job is None or self._job.state is not State.RUNNING:
            return
        self.ask_to_stop()
        self._pass_on()
        while self._job.alive:
            time.sleep(_PAUSE)
        self._job.stop()

    def _pass_on(self) -> None:
        """Signal the process if it is to stop and does not know it yet: a signal may come while it is being started."""
        if self.stopping and self._job is not None and not self._job.stopping:
            self._job.signal(signal.SIGTERM)


def remote_jobs(run_dirs: Sequence[RunDir]) -> list[Job]:
    """Make the jobs of a sweep with absolute paths, which are valid on other machines too."""
    return jobs_of([RunDir(run_dir.path.absolute()) for run_dir in run_dirs])


def settle(job: Job, outcome: Outcome) -> None:
    """Give a job the state that its run has ended in on its machine."""
    job.attempts, (job.started, job.ended, job.reason, state) = 1, outcome
    if state in (State.ELSEWHERE, State.PAUSED, State.PRUNED):
        job.state = state
        return
    if not job.reason and not _appears(job.run_dir):
        job.reason = "its result, which was written on another machine, cannot be seen on this one"
    job.state = State.FAILED if job.reason else job.outcome


def _appears(run: RunDir) -> bool:
    """Return whether the result of a finished run can be seen here; a network file system may take a while."""
    deadline = time.monotonic() + _NFS_CACHE
    while not run.finished and time.monotonic() < deadline:
        look_again(run.path)
        time.sleep(_PAUSE)
    return run.finished
