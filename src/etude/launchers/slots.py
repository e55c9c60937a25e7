"""Run several runs in parallel, as many at once as there are slots, each in a process of its own."""

import logging
import shlex
import signal
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from etude.errors import UserError
from etude.launchers.dashboard import Dashboard, dashboard
from etude.launchers.interrupts import Interrupts, interrupts
from etude.launchers.job import GRACE, Command, Job, train_command
from etude.launchers.options import Options
from etude.launchers.resources import Need, Slot, Slots
from etude.runs.lock import hold_lock
from etude.runs.run_dir import RunDir
from etude.runs.run_state import DONE, State
from etude.runs.typed import distinguishing_overrides
from etude.runs.wandb_id import is_kept_back
from etude.studies.study import value_at

Cost = Callable[[Sequence[dict[str, Any]]], Sequence[float]]  # frozen configs to hours

logger = logging.getLogger(__name__)

_REFRESH = 0.5  # seconds between two pictures of the sweep; the end of a process is noticed at once
_SLACK = 10.0  # seconds beyond the grace, in which killed processes have to go
_PATIENCE = 1.0  # seconds to wait for another process that works on a run


class SweepFailed(Exception):  # noqa: N818
    """Some runs of a sweep failed; the message names them, each with the last lines of its log."""


def planned_hours(configs: Sequence[dict[str, Any]]) -> Sequence[float]:
    """Hours of each run by its plan, all on the same device: they are compared, not kept to.

    Where a run cannot be planned, all count alike.
    """
    from etude.inspect.plan.device import load_device  # these need torch
    from etude.inspect.plan.runs import plan_runs

    try:
        return [run.hours for run in plan_runs(configs, load_device("cpu"))]
    except Exception as error:  # whatever is wrong with a run, it will say itself
        logger.info("the runs start in the order given, for their plan cannot be made: %s", error or repr(error))
        return [0.0] * len(configs)


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
        retries, timeout, grace, fail_fast: as `conf/hydra/launcher/slots.yaml` has them.
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

    with interrupts() as signals, dashboard(jobs) as show:
        try:
            while not (signals.caught or is_over()):
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
                signals.wait(_REFRESH)
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
                        job.state = State.WAITING
                        waiting.append(job)
        finally:
            _stop([*running], signals, show, grace)
    conclude(jobs, stopped=bool(signals.caught))


def train_on_several(run: RunDir, launcher: Mapping[str, Any]) -> dict[str, Any]:
    """Train a frozen run on several devices: a process for each, launched and watched like a sweep of one.

    Returns what `result.json` holds. `launcher` is Hydra's node, which says what there is to run on.

    Raises:
        Busy: another process works on it.
        UserError: the data cannot be had, or the config or this machine does not fit; nothing was started.
        SweepFailed, KeyboardInterrupt: as `run_side_by_side`.
    """
    from etude.tasks import build

    try:
        asked = Options(**{key: value for key, value in launcher.items() if not key.startswith("_")})
    except TypeError as error:
        raise UserError("one run on several devices is launched on this machine: say hydra/launcher=slots") from error
    with hold_lock(run, _PATIENCE):
        pass  # a sweep would wait for the other process; whoever asks for one run is told
    config = run.config()
    build.shapes(config)
    build.token_store(config)  # made here, where a mistake is one sentence and not one of each process
    run_side_by_side([run], asked.slots(), **asked.how)
    return run.result()


def jobs_of(run_dirs: Sequence[RunDir], retries: int = 0) -> list[Job]:
    """The runs of a sweep, each once, under names that tell them apart.

    Raises:
        UserError, OSError: as `Job`.
    """
    jobs = [Job(run_dir, retries) for run_dir in dict.fromkeys(run_dirs)]
    alike: dict[str, list[Job]] = {}
    for job in jobs:
        alike.setdefault(job.name, []).append(job)
    for group in alike.values():
        typed = {job: distinguishing_overrides(job.run_dir.overrides()) for job in group}
        shared = set.intersection(*map(set, typed.values()))
        for job, words in typed.items():
            job.apart = " ".join(word for word in words if word not in shared)
    return jobs


def take_back(jobs: Sequence[Job], show: Dashboard) -> list[Job]:
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


def _stop(running: Sequence[Job], signals: Interrupts, show: Dashboard, grace: float) -> None:
    """Ask every process to stop, and kill it when its time is over or the user grows impatient."""
    for job in running:
        job.signal(signal.SIGTERM)
    deadline, asked = time.monotonic() + grace + _SLACK, len(signals.caught)
    if running:
        show.stopping(len(running), grace)
    while any(job.alive for job in running) and time.monotonic() < deadline and not signals.is_repeated(asked):
        signals.wait(_REFRESH)
        show.refresh()
    for job in running:
        job.signal(signal.SIGUSR1)
    for job in running:
        job.stop()


def conclude(jobs: Sequence[Job], *, stopped: bool) -> None:
    """Say what diverged, or has not come to W&B; raise what the sweep ends with, if not all is well.

    Neither fails a sweep: a run that diverged has a result, and no result depends on W&B.
    """
    if diverged := [f"{job.name} ({job.divergence})" for job in jobs if job.state is State.DIVERGED]:
        logger.warning(
            "%d of %d runs diverged, which no retry would change: %s", len(diverged), len(jobs), "; ".join(diverged)
        )
    if kept := [job for job in jobs if is_kept_back(job.run_dir) and _wants_to_be_sent(job)]:
        folders = " ".join(f"{shlex.quote(str(study))}/*/*/wandb" for study in _studies(kept))
        logger.warning("W&B lacks %d of %d runs; this sends them: wandb sync %s", len(kept), len(jobs), folders)
    if stopped:
        done = sum(job.state in DONE for job in jobs)
        raise KeyboardInterrupt(f"{done} of {len(jobs)} runs are finished; the same command goes on with the others")
    failed = [job for job in jobs if job.state is State.FAILED]
    if failed:
        failures = "\n\n".join(job.failure() for job in failed)
        others = "the others are finished" if len(failed) < len(jobs) else "none is finished"
        again = "the same command runs only these again"
        if unfinished := sum(job.state not in (*DONE, State.FAILED) for job in jobs):  # after fail_fast
            others, again = f"{unfinished} were stopped or not begun", "the same command goes on with all of them"
        raise SweepFailed(f"{len(failed)} of {len(jobs)} runs failed:\n\n{failures}\n\n{others}; {again}")


def _wants_to_be_sent(job: Job) -> bool:
    return value_at(job.config, "logger.wandb.mode") == "online"


def _studies(jobs: Sequence[Job]) -> list[Path]:
    """The folders of their studies, each once."""
    return list(dict.fromkeys(job.run_dir.path.parents[1] for job in jobs))
