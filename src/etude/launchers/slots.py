"""Run several runs in parallel on this machine, as many at once as there are slots, each in its own process."""

import logging
import shlex
import signal
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from etude.errors import UserError
from etude.launchers.dashboard import Dashboard, dashboard
from etude.launchers.interrupts import Interrupts, interrupts
from etude.launchers.job import GRACE, Job
from etude.launchers.options import Options
from etude.launchers.process import Command, train_command
from etude.launchers.resources import Need, Slot, Slots
from etude.runs.lock import hold
from etude.runs.run_dir import RunDir
from etude.runs.run_state import DONE, State
from etude.runs.typed import distinguishing_overrides
from etude.runs.wandb_id import is_kept_back
from etude.studies.study import value_at

Cost = Callable[[Sequence[dict[str, Any]]], Sequence[float]]  # frozen configs to hours

logger = logging.getLogger(__name__)

_REFRESH = 0.5  # seconds between updates of the table; the end of a process is noticed at once
_SLACK = 10.0  # seconds beyond the grace period in which killed processes must end


class SweepFailed(Exception):  # noqa: N818
    """Some runs of a sweep failed; the message names them, each with the last lines of its log."""


def planned_hours(configs: Sequence[dict[str, Any]]) -> Sequence[float]:
    """Estimate the hours of each run, all on the same device; the figures only serve to order the runs.

    If a run cannot be planned, all get the same estimate.
    """
    from etude.inspect.plan.device import load_device  # these need torch
    from etude.inspect.plan.runs import plan_runs

    try:
        return [run.hours for run in plan_runs(configs, load_device("cpu"))]
    except Exception as error:  # the run itself will report what is wrong with it
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
    """Run all unfinished runs, longest first, as many at once as there are slots, and show their progress.

    A run that another process works on is skipped at first. The sweep checks on it until it is finished, and takes it
    over if the other process leaves it unfinished. So several sweeps can share the same runs.

    Args:
        run_dirs: frozen runs; a run that is listed twice is run once.
        slots: the resources to run on.
        retries, timeout, grace, fail_fast: see `conf/hydra/launcher/slots.yaml`.
        cost: estimates the hours of runs from their configs; only called if not all runs fit at once.
        command: makes the command line that trains one run.

    Raises:
        UserError: a run needs more than `slots` has; nothing was started.
        SweepFailed: at least one run ended without a result; without `fail_fast`, all the others were run.
        KeyboardInterrupt: Ctrl-C, SIGTERM or SIGHUP; every process has ended.
    """
    jobs = jobs_of(run_dirs, retries)
    waiting = _longest_first([job for job in jobs if job.state is State.WAITING], slots, cost)
    running: dict[Job, Slot] = {}

    def is_over() -> bool:
        if fail_fast and any(job.state is State.FAILED for job in jobs):  # a run that is tried again is WAITING
            return True
        return not (waiting or running or any(job.state is State.ELSEWHERE for job in jobs))

    with interrupts() as signals, dashboard(jobs) as show:
        try:
            while not (signals.caught or is_over()):
                waiting = [*take_back(jobs, show), *waiting]
                ready = startable(waiting, running)
                for place, slot in slots.admit([Need.of(job.config) for job in ready]).items():
                    job = ready[place]
                    waiting.remove(job)
                    job.refresh_state()
                    if job.state is State.WAITING:
                        running[job] = slot
                        job.start(command, slot.threads, slot.gpus, timeout=timeout, grace=grace)
                        show.started(job)
                    else:
                        slots.give_back(slot)
                        show.elsewhere(job)
                show.refresh()
                signals.wait(_REFRESH)
                for job in list(running):
                    job.poll()
                    if job.state is State.RUNNING:
                        continue
                    slots.give_back(running.pop(job))
                    if job.state is State.ELSEWHERE:  # another process took the lock first
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
    """Train a frozen run on several devices, with one process per device, launched like a sweep of one run.

    Returns the content of `result.json`. `launcher` is the node `hydra.launcher`, which describes the resources.

    Raises:
        Busy: another process works on the run.
        UserError: the data is not available, or the config is wrong or too large for this machine; nothing was started.
        SweepFailed, KeyboardInterrupt: as `run_side_by_side`.
    """
    from etude.tasks import build

    if not str(launcher["_target_"]).endswith(".SlotsLauncher"):
        raise UserError("one run on several devices is launched on this machine: say hydra/launcher=slots")
    asked = Options.of({key: value for key, value in launcher.items() if not key.startswith("_")})
    with hold(run.lock_file, run.busy):
        pass  # raises Busy if another process works on the run: a sweep would wait for it, a single run does not
    config = run.config()
    build.shapes(config)
    build.token_store(config)  # prepared here, so that an error is reported once and not by each process
    run_side_by_side([run], asked.slots(), **asked.run_arguments)
    return run.result()


def jobs_of(run_dirs: Sequence[RunDir], retries: int = 0) -> list[Job]:
    """Make the jobs of a sweep, one per distinct run, with names that distinguish them.

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
            job.name_suffix = " ".join(word for word in words if word not in shared)
    return jobs


def startable(waiting: Iterable[Job], running: Iterable[Job]) -> list[Job]:
    """Return the runs that may start: one of each training that is not complete, any number of one that is."""
    begun = {job.run_dir.own_training for job in running if job.trains}
    ready = []
    for job in waiting:
        training = job.run_dir.own_training
        if training not in begun:
            ready.append(job)
            begun |= {training} if job.trains else set()
    return ready


def take_back(jobs: Sequence[Job], show: Dashboard) -> list[Job]:
    """Return the runs that other processes worked on and left unfinished; announce those that they finished."""
    elsewhere = [job for job in jobs if job.state is State.ELSEWHERE]
    for job in elsewhere:
        job.refresh_state()
        if job.state in DONE:
            show.elsewhere(job)
    return [job for job in elsewhere if job.state is State.WAITING]


def _longest_first(jobs: list[Job], slots: Slots, cost: Cost) -> list[Job]:
    """Sort the jobs by estimated hours, longest first; if all fit at once, leave them in order.

    Raises:
        UserError: a run could never start.
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
    """Ask every process to stop, and kill it after the grace period or at a second Ctrl-C."""
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
    """Log which runs diverged or are not synced to W&B, and raise an error if the sweep was stopped or runs failed.

    Divergence and missing synchronization are no errors: a diverged run has a result, and no result depends on W&B.

    Raises:
        SweepFailed: at least one run failed.
        KeyboardInterrupt: the sweep was interrupted.
    """
    if diverged := [f"{job.name} ({job.divergence})" for job in jobs if job.state is State.DIVERGED]:
        logger.warning(
            "%d of %d runs diverged, which no retry would change: %s", len(diverged), len(jobs), "; ".join(diverged)
        )
    offline = [job for job in jobs if is_kept_back(job.run_dir)]
    if kept := [job for job in offline if value_at(job.config, "logger.wandb.mode") == "online"]:
        studies = dict.fromkeys(job.run_dir.path.parents[1] for job in kept)
        folders = " ".join(f"{shlex.quote(str(study))}/*/*/wandb" for study in studies)
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
