"""Runs side by side: as many at once as there are slots, each its own process, none taking the others along.

A slot is a group of processor cores.
"""

import logging
import os
import signal
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import FrameType

from etude.errors import UserError
from etude.rundir import RunDir
from etude.sweep.job import Command, Job, State, train_command
from etude.sweep.live import screen

logger = logging.getLogger(__name__)

_PAUSE = 0.2  # seconds between two looks at the processes
_GRACE = 15.0  # seconds that an interrupted run has to put itself away


class SweepFailed(Exception):  # noqa: N818
    """Some runs of a sweep failed; the message names them, each with the last lines of its log."""


def slots(workers: int | str, threads: int) -> int:
    """How many runs go at once.

    Args:
        workers: a number, or "auto" for as many as the usable cores can feed.
        threads: cores for each run.

    Raises:
        UserError: one of them is no positive number.
    """
    if type(threads) is not int or threads < 1:
        raise UserError(f"hydra.launcher.threads={threads}: it must be a whole number of cores, 1 or more")
    if workers == "auto":
        return max(1, _usable_cores() // threads)
    if type(workers) is not int or workers < 1:
        raise UserError(f"hydra.launcher.workers={workers}: it must be auto or a whole number, 1 or more")
    return workers


def run_side_by_side(
    run_dirs: Sequence[RunDir],
    *,
    workers: int,
    threads: int,
    command: Command = train_command,
    grace: float = _GRACE,
) -> None:
    """Run all that are not finished, the longest first, `workers` at once, and show how they stand.

    Args:
        run_dirs: frozen runs; one that is named twice runs once.
        workers: how many run at once.
        threads: how many cores each may use.
        command: the process that does one run.
        grace: seconds between asking a run to stop and killing it, when the sweep is interrupted.

    Raises:
        SweepFailed: at least one run ended without a result; all the others were run.
        KeyboardInterrupt: Ctrl-C, SIGTERM or SIGHUP; every process has ended.
    """
    jobs = [Job(run_dir) for run_dir in dict.fromkeys(run_dirs)]
    waiting = sorted((job for job in jobs if job.state is State.WAITING), key=lambda job: job.cost, reverse=True)
    running: list[Job] = []
    with _interrupts() as caught, screen(jobs) as show:
        try:
            while (waiting or running) and not caught:
                while waiting and len(running) < workers:
                    running.append(waiting.pop(0))
                    running[-1].start(command(running[-1].run_dir), threads)
                    show.started(running[-1])
                show.refresh()
                time.sleep(_PAUSE)
                for job in list(running):
                    job.poll()
                    if job.state is not State.RUNNING:
                        running.remove(job)
                        show.ended(job)
        finally:
            _stop(running, grace, caught)
    if caught:
        done = sum(job.state in (State.FINISHED, State.SKIPPED) for job in jobs)
        logger.warning("stopped: %d of %d runs are finished", done, len(jobs))
        raise KeyboardInterrupt
    failed = [job for job in jobs if job.state is State.FAILED]
    if failed:
        told = "\n\n".join(job.failure() for job in failed)
        others = "the others are finished" if len(failed) < len(jobs) else "none is finished"
        raise SweepFailed(
            f"{len(failed)} of {len(jobs)} runs failed:\n\n{told}\n\n{others}; the same command runs only these again"
        )


def _stop(running: Sequence[Job], grace: float, caught: Sequence[int]) -> None:
    """Ask every process to stop, and kill it when the time is over or the user grows impatient."""
    for job in running:
        job.signal(signal.SIGTERM)
    deadline, asked = time.monotonic() + grace, len(caught)
    while any(job.alive for job in running) and time.monotonic() < deadline and len(caught) == asked:
        time.sleep(_PAUSE / 4)
    for job in running:
        job.stop()


@contextmanager
def _interrupts() -> Iterator[list[int]]:
    """The signals caught so far: noted, not raised, for none may strike between a process and its entry in a list."""
    caught: list[int] = []

    def note(number: int, frame: FrameType | None) -> None:
        caught.append(number)

    heeded = [s for s in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP) if signal.getsignal(s) != signal.SIG_IGN]
    before = {number: signal.signal(number, note) for number in heeded}
    try:
        yield caught
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _usable_cores() -> int:
    """The cores this process may use: what the machine has, less what affinity and a container's quota take away."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    try:
        quota, period = Path("/sys/fs/cgroup/cpu.max").read_text(encoding="ascii").split()
        return min(cores, max(1, int(quota) // int(period)))
    except (OSError, ValueError):  # no such file, or "max"
        return cores
