"""Runs side by side: as many at once as there are slots, each its own process, none taking the others along."""

import logging
import signal
import time
from collections.abc import Sequence

from etude.errors import UserError
from etude.launchers.cost import Cost, planned_hours
from etude.launchers.dashboard import Screen, screen
from etude.launchers.interrupts import Interrupts, interrupts
from etude.launchers.job import GRACE, Command, Job, jobs_of, train_command
from etude.launchers.resources import Need, Slot, Slots
from etude.runs.run_dir import RunDir
from etude.runs.run_state import DONE, State

logger = logging.getLogger(__name__)

_REFRESH = 0.5  # seconds between two pictures of the sweep; the end of a process is noticed at once
_SLACK = 10.0  # seconds beyond the grace, in which killed processes have to go


class SweepFailed(Exception):  # noqa: N818
    """Some runs of a sweep failed; the message names them, each with the last lines of its log."""


def run_side_by_side(
    run_dirs: Sequence[RunDir],
    slots: Slots,
    *,
    retries: int = 0,
    timeout: float | None = None,
    grace: float = GRACE,
    fail_fast: bool = False,
    cost: Cost = planned_hours,
    command: Command = train_command,
) -> None:
    """Run all that are not finished, the longest first, as many at once as there are slots, and show how they stand.

    A run that another process works on is left to it meanwhile; the sweep comes back to it, and ends when all have. So
    several sweeps over the same runs share them.

    Args:
        run_dirs: frozen runs; one that is named twice runs once.
        slots: what there is to run on.
        retries: how often a failed run is tried again, behind those that wait.
        timeout: seconds that an attempt at a run may take; then it is stopped, and has failed.
        grace: seconds between asking a run to stop and killing it.
        fail_fast: whether the first run that fails for good stops all others, as Ctrl-C does.
        cost: what runs will take, by their configs; asked where not all can run at once.
        command: the process that does one run.

    Raises:
        UserError: a run asks for more than there is; nothing was started.
        SweepFailed: at least one run ended without a result; all the others were run.
        KeyboardInterrupt: Ctrl-C, SIGTERM or SIGHUP; every process has ended.
    """
    jobs = jobs_of(run_dirs, retries)
    waiting = _in_order([job for job in jobs if job.state is State.WAITING], slots, cost)
    running: dict[Job, Slot] = {}

    def is_over() -> bool:
        if fail_fast and any(job.state is State.FAILED for job in jobs):  # one that is tried again waits
            return True
        return not (waiting or running or any(job.state is State.ELSEWHERE for job in jobs))

    with interrupts() as heard, screen(jobs) as show:
        try:
            while not (heard.caught or is_over()):
                waiting = [*take_back(jobs, show), *waiting]
                admitted = slots.admit([Need.of(job.config) for job in waiting])
                for place, slot in admitted.items():
                    job = waiting[place]
                    if job.claim():
                        running[job] = slot
                        job.start(command, slot.threads, slot.gpus, timeout=timeout, grace=grace)
                        show.started(job)
                    else:
                        slots.give_back(slot)
                        show.elsewhere(job)
                waiting = [job for place, job in enumerate(waiting) if place not in admitted]
                show.refresh()
                heard.wait(_REFRESH)
                for job in list(running):
                    job.poll()
                    if job.state is State.RUNNING:
                        continue
                    slots.give_back(running.pop(job))
                    if job.state is State.ELSEWHERE:  # that process was quicker
                        show.elsewhere(job)
                        continue
                    show.ended(job)
                    if job.retriable:
                        job.wait_again()
                        waiting.append(job)
        finally:
            _stop([*running], heard, show, grace)
    conclude(jobs, stopped=bool(heard.caught))


def take_back(jobs: Sequence[Job], show: Screen) -> list[Job]:
    """Of the runs that other processes worked on, those that are left unfinished; those that are finished are told."""
    elsewhere = [job for job in jobs if job.state is State.ELSEWHERE]
    for job in elsewhere:
        job.look()
        if job.state in DONE:
            show.elsewhere(job)
    return [job for job in elsewhere if job.state is State.WAITING]


def _in_order(jobs: list[Job], slots: Slots, cost: Cost) -> list[Job]:
    """The longest first, where some have to wait.

    Raises:
        UserError: one would wait for ever.
    """
    needs = [Need.of(job.config) for job in jobs]
    for job, need in zip(jobs, needs, strict=True):
        if refusal := slots.refusal(need):
            raise UserError(f"{job.name} {refusal}")
    if slots.hold_all(needs):
        return jobs
    hours = dict(zip(jobs, cost([job.config for job in jobs]), strict=True))
    return sorted(jobs, key=lambda job: hours[job], reverse=True)


def _stop(running: Sequence[Job], heard: Interrupts, show: Screen, grace: float) -> None:
    """Ask every process to stop, and kill it when its time is over or the user grows impatient."""
    for job in running:
        job.signal(signal.SIGTERM)
    deadline, asked = time.monotonic() + grace + _SLACK, len(heard.caught)
    if running:
        show.stopping(len(running), grace)
    while any(job.alive for job in running) and time.monotonic() < deadline and not heard.impatience(asked):
        heard.wait(_REFRESH)
        show.refresh()
    for job in running:
        job.signal(signal.SIGUSR1)
    for job in running:
        job.stop()


def conclude(jobs: Sequence[Job], *, stopped: bool) -> None:
    """Say what diverged, which is a result and fails no sweep; raise what the sweep ends with, if not all is well."""
    if diverged := [f"{job.name} ({job.divergence})" for job in jobs if job.state is State.DIVERGED]:
        logger.warning(
            "%d of %d runs diverged, which no retry would change: %s", len(diverged), len(jobs), "; ".join(diverged)
        )
    if stopped:
        done = sum(job.state in DONE for job in jobs)
        raise KeyboardInterrupt(f"{done} of {len(jobs)} runs are finished; the same command goes on with the others")
    failed = [job for job in jobs if job.state is State.FAILED]
    if failed:
        told = "\n\n".join(job.failure() for job in failed)
        others = "the others are finished" if len(failed) < len(jobs) else "none is finished"
        again = "the same command runs only these again"
        if unfinished := sum(job.state not in (*DONE, State.FAILED) for job in jobs):  # after fail_fast
            others, again = f"{unfinished} were stopped or not begun", "the same command goes on with all of them"
        raise SweepFailed(f"{len(failed)} of {len(jobs)} runs failed:\n\n{told}\n\n{others}; {again}")
