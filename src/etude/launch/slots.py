"""Run several runs in parallel on this machine, as many at once as there are slots, each in its own process."""

import logging
import signal
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from etude.errors import UserError
from etude.launch.dashboard import Dashboard
from etude.launch.interrupts import Interrupts
from etude.launch.job import GRACE, Job
from etude.launch.options import Options
from etude.launch.process import Command, train_command
from etude.launch.resources import Need, Slot, Slots
from etude.launch.sweep import NOTHING_MORE, Source, jobs_of, run_all
from etude.store.lock import hold
from etude.store.run_dir import RunDir
from etude.store.run_state import State

Cost = Callable[[Sequence[dict[str, Any]]], Sequence[float]]  # frozen configs to hours

logger = logging.getLogger(__name__)

_REFRESH = 0.5  # seconds between updates of the table; the end of a process is noticed at once
_SLACK = 10.0  # seconds beyond the grace period in which killed processes must end


class SlotLauncher:
    """Starts each run in a slot of this machine: a GPU, a share of one, several GPUs, or CPU cores.

    Args:
        slots: the resources to run on.
        timeout, grace: see `conf/hydra/launcher/slots.yaml`.
        command: makes the command line that trains one run.
    """

    is_here = True

    def __init__(
        self, slots: Slots, *, timeout: float | None = None, grace: float = GRACE, command: Command = train_command
    ) -> None:
        self.slots, self.timeout, self.grace, self.command = slots, timeout, grace, command
        self._held: dict[Job, Slot] = {}

    def submit(self, jobs: Sequence[Job]) -> list[Job]:
        """Start the runs for which there are slots.

        Raises:
            UserError: one needs more than there is.
        """
        needs = [Need.of(job.config) for job in jobs]
        for job, need in zip(jobs, needs, strict=True):
            if refusal := self.slots.refusal(need):
                raise UserError(f"{job.name} {refusal}")
        admitted = self.slots.admit(needs)
        for place, slot in admitted.items():
            job = jobs[place]
            job.refresh_state()
            if job.state is not State.WAITING:  # another process has taken it
                self.slots.give_back(slot)
                continue
            self._held[job] = slot
            job.start(self.command, slot.threads, slot.gpus, timeout=self.timeout, grace=self.grace)
        return [jobs[place] for place in admitted]

    def wait(self, jobs: Sequence[Job], signals: Interrupts) -> list[Job]:
        """Wait until a process ends, for half a second at most."""
        signals.wait(_REFRESH)
        for job in jobs:
            job.poll()
        ended = [job for job in jobs if job.state is not State.RUNNING]
        for job in ended:
            self.slots.give_back(self._held.pop(job))
        return ended

    def cancel(self, jobs: Sequence[Job], signals: Interrupts, show: Dashboard) -> None:
        """Ask every process to stop, and kill it after the grace period or at a second Ctrl-C."""
        for job in jobs:
            job.signal(signal.SIGTERM)
        deadline, asked = time.monotonic() + self.grace + _SLACK, len(signals.caught)
        show.stopping(len(jobs), self.grace)
        while any(job.alive for job in jobs) and time.monotonic() < deadline and not signals.is_repeated(asked):
            signals.wait(_REFRESH)
            show.refresh()
        for job in jobs:
            job.signal(signal.SIGUSR1)
        for job in jobs:
            job.stop()


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
    source: Source = NOTHING_MORE,
    at_once: int | None = None,
) -> None:
    """Run all unfinished runs, longest first, as many at once as there are slots; see `run_all`.

    Args:
        run_dirs: frozen runs; a run that is listed twice is run once.
        slots: the resources to run on.
        retries, timeout, grace, fail_fast: see `conf/hydra/launcher/slots.yaml`.
        cost: estimates the hours of runs from their configs; only called if not all runs fit at once.
        command: makes the command line that trains one run.
        source: where further runs come from.
        at_once: how many of these are trained at once; None: as many as there are slots.

    Raises:
        UserError: a run needs more than `slots` has; nothing was started.
        SweepFailed: at least one run ended without a result; without `fail_fast`, all the others were run.
        KeyboardInterrupt: Ctrl-C, SIGTERM or SIGHUP; every process has ended.
    """
    jobs = jobs_of(run_dirs, retries)
    order = _longest_first([job for job in jobs if job.state is State.WAITING], slots, cost)
    launcher = SlotLauncher(slots, timeout=timeout, grace=grace, command=command)
    run_all(
        *(jobs, launcher),
        order=order,
        fail_fast=fail_fast,
        source=source,
        at_once=at_once or slots.count,
        retries=retries,
    )


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
