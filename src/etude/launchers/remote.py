"""A run on another machine: what the worker there is handed, and what it says in the end.

Both machines see the run's directory: config, log, progress, checkpoints and result pass through it.
"""

import os
import signal
import time
from collections.abc import Callable, Generator, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from etude.launchers.dashboard import Dashboard
from etude.launchers.job import GRACE, Command, Job, train_command
from etude.launchers.slots import conclude, jobs_of, take_back
from etude.runs.lock import Busy, hold_lock
from etude.runs.run_dir import RunDir
from etude.runs.run_state import State

_PAUSE = 0.1  # seconds between two looks at the process
_LOOKS = 1.0  # seconds between two looks at runs that other processes work on


class Outcome(NamedTuple):
    """How a run ended on its machine."""

    started: float  # seconds since the epoch
    ended: float
    reason: str  # why there is no result; empty if there is one
    elsewhere: bool = False  # another process works on it


Outcomes = Generator[tuple[Job, Outcome], None, None]
Launch = Callable[[Sequence[Job]], Outcomes]  # hands runs over, and gives each as it ends


@dataclass
class RemoteRun:
    """Trains a frozen run, in a process of its own, on the machine where it is called."""

    run_dir: RunDir  # with an absolute path
    threads: int  # of each of its processes
    gpus: Sequence[str] | None = None  # ids of those it sees; None for those that the caller sees
    grace: float = GRACE  # seconds between asking it to stop and killing it
    command: Command = train_command
    folder: Path = field(default_factory=Path.cwd)  # where the sweep was typed, whose modules and files the run uses
    _job: Job | None = field(default=None, init=False, repr=False)

    def __call__(self) -> Outcome:
        """Train until the run has ended; whatever cuts this short stops the run first."""
        os.chdir(self.folder)
        with suppress(Busy), hold_lock(self.run_dir, self.grace):
            pass  # an attempt whose worker has died may still be writing its checkpoint
        job = self._job = Job(self.run_dir)
        try:
            if job.state is State.WAITING and job.claim():
                job.start(self.command, self.threads, self.gpus, grace=self.grace)
            while job.state is State.RUNNING:
                time.sleep(_PAUSE)
                job.poll()
        finally:
            self.stop()
        return Outcome(job.started, job.ended, job.reason, job.state is State.ELSEWHERE)

    @property
    def stopping(self) -> bool:
        """Whether the run has been asked to stop."""
        return self._job is not None and self._job.stopping

    def ask_to_stop(self) -> None:
        """Have the run write its checkpoint and end; it is asked once."""
        if self._job is not None and not self._job.stopping:
            self._job.signal(signal.SIGTERM)

    def stop(self) -> None:
        """Ask the run to stop, and return when it has; it is killed when the grace is over."""
        if self._job is None or self._job.state is not State.RUNNING:
            return
        self.ask_to_stop()
        while self._job.alive:
            time.sleep(_PAUSE)
        self._job.stop()


def remote_jobs(run_dirs: Sequence[RunDir]) -> list[Job]:
    """The runs of a sweep, under paths that hold on other machines too."""
    return jobs_of([RunDir(run_dir.path.absolute()) for run_dir in run_dirs])


def follow(jobs: Sequence[Job], launch: Launch, *, fail_fast: bool = False) -> None:
    """Launch all runs that wait, tell how each ended as it does, and all failures again after the last.

    What another process works on is left to it meanwhile. When all others have ended, whatever that process has let go
    of unfinished is launched again; until then it waits here, where no core or GPU is kept for it.

    Args:
        jobs: all runs.
        launch: hands runs over.
        fail_fast: whether the first failure ends it, and with the outcomes what was launched.

    Raises:
        SweepFailed: at least one run ended without a result.
    """
    show = Dashboard(jobs)
    left = [job for job in jobs if job.state is State.WAITING]
    while left:
        with closing(launch(left)) as outcomes:
            for job, outcome in outcomes:
                job.attempts, (job.started, job.ended, job.reason, taken) = 1, outcome
                if taken:
                    job.state = State.ELSEWHERE
                    show.elsewhere(job)
                    continue
                job.state = State.FAILED if outcome.reason else job.outcome
                show.ended(job)
                if fail_fast and job.state is State.FAILED:
                    conclude(jobs, stopped=False)
        while not (left := take_back(jobs, show)) and any(job.state is State.ELSEWHERE for job in jobs):
            time.sleep(_LOOKS)
    conclude(jobs, stopped=False)
