"""Run the runs of a sweep as Ray tasks. Ray allocates cores, GPUs and fractions of GPUs on one machine or several."""

import logging
import os
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import ray

from etude.errors import UserError
from etude.launch.dashboard import Dashboard
from etude.launch.interrupts import Interrupts
from etude.launch.job import Job
from etude.launch.options import check_flags
from etude.launch.process import Command, train_command
from etude.launch.remote import Outcome, RemoteRun, remote_jobs, settle
from etude.launch.resources import Need
from etude.launch.sweep import NOTHING_MORE, Source, run_all
from etude.store.run_dir import RunDir
from etude.store.run_state import State

logger = logging.getLogger(__name__)

_REFRESH = 0.5  # seconds between looks at the tasks


def run_as_tasks(
    run_dirs: Sequence[RunDir],
    *,
    init: Mapping[str, Any],
    num_cpus: float,
    num_gpus: float | None,
    max_retries: int,
    fail_fast: bool = False,
    command: Command = train_command,
    source: Source = NOTHING_MORE,
    at_once: int | None = None,
) -> None:
    """Run all unfinished runs, as many at once as Ray has resources for; see `run_all`.

    Args:
        run_dirs: frozen runs; a run that is listed twice is run once.
        init, num_cpus, num_gpus, max_retries, fail_fast: see `conf/hydra/launcher/ray.yaml`.
        command: makes the command line that trains one run.
        source: where further runs come from.
        at_once: how many of these are trained at once; None: as many as the cluster has resources for.

    Raises:
        UserError: Ray cannot start or rejects an option.
        SweepFailed: at least one run ended without a result; without `fail_fast`, all the others were run.
        KeyboardInterrupt: Ctrl-C or SIGTERM; every run has stopped.
    """
    check_flags(fail_fast=fail_fast)
    for key, value in (("num_cpus", num_cpus), ("num_gpus", num_gpus or 0)):
        if type(value) not in (int, float) or value < 0:
            raise UserError(f"hydra.launcher.{key}={value}: it must be a number, 0 or more")
    jobs = remote_jobs(run_dirs)
    if source is not NOTHING_MORE or any(job.state is State.WAITING for job in jobs):
        _start(init)
        there = ray.cluster_resources()
        gpus = float("GPU" in there) if num_gpus is None else num_gpus  # of a run on one device
        room = [there.get(kind, 0) / asked for kind, asked in (("CPU", num_cpus), ("GPU", gpus)) if asked]
        at_once = at_once or max(1, int(min(room, default=1)))
    launcher = RayLauncher(num_cpus, num_gpus, max_retries, command)
    try:
        run_all(jobs, launcher, fail_fast=fail_fast, source=source, at_once=at_once or 1)
    finally:
        ray.shutdown()


class RayLauncher:
    """Hands each run to Ray as a task; the arguments are those of `run_as_tasks`."""

    is_here = False

    def __init__(self, num_cpus: float, num_gpus: float | None, max_retries: int, command: Command) -> None:
        self.num_cpus, self.num_gpus, self.max_retries, self.command = num_cpus, num_gpus, max_retries, command
        self._tasks: dict[Any, Job] = {}  # Ray's reference to the outcome -> run
        self._began = time.time()

    def submit(self, jobs: Sequence[Job]) -> list[Job]:
        """Queue all runs.

        Raises:
            UserError: Ray rejects an option.
        """
        for job in jobs:
            job.refresh_state()
            if job.state is State.WAITING:
                with _explained():
                    self._tasks[self._task(job)] = job
                job.state = State.RUNNING
        return [*jobs]

    def wait(self, jobs: Sequence[Job], signals: Interrupts) -> list[Job]:
        """Wait until a task ends, for half a second at most."""
        if not self._tasks:
            signals.wait(_REFRESH)
            return []
        ended, _ = ray.wait([*self._tasks], num_returns=1, timeout=_REFRESH)
        return [self._settle(task) for task in ended]

    def cancel(self, jobs: Sequence[Job], signals: Interrupts, show: Dashboard) -> None:
        """Cancel the tasks, whose runs write their checkpoints."""
        logger.warning("stopping %d runs, which write their checkpoints; Ctrl-C again ends them at once", len(jobs))
        asked = len(signals.caught)
        for task in self._tasks:
            ray.cancel(task)
        left = [*self._tasks]
        while left and not signals.is_repeated(asked):
            _, left = ray.wait(left, num_returns=len(left), timeout=_REFRESH)

    def _task(self, job: Job) -> Any:
        """Submit one run with the resources it needs; return Ray's reference to its outcome."""
        need = Need.of(job.config)
        gpus = _gpus(need, self.num_gpus)
        for kind, asked in (("CPU", self.num_cpus), ("GPU", gpus)):
            there = ray.cluster_resources().get(kind, 0)
            if asked > there:
                logger.warning("%s asks for %g %ss and Ray has %g: it waits for more", job.name, asked, kind, there)
        threads = max(1, int(self.num_cpus) // need.devices)
        run = RemoteRun(job.run_dir, threads, None if gpus else (), command=self.command, config=job.launched_config)
        asking = ray.remote(num_cpus=self.num_cpus, num_gpus=gpus, max_retries=self.max_retries)
        return asking(_train).options(name=job.name).remote(run)

    def _settle(self, task: Any) -> Job:
        job = self._tasks.pop(task)
        try:
            outcome = ray.get(task)
        except ray.exceptions.RayError as error:
            outcome = Outcome(self._began, time.time(), f"Ray gave it up: {str(error).strip().splitlines()[-1]}")
        settle(job, outcome)
        return job


def _start(init: Mapping[str, Any]) -> None:
    with _explained():
        if not ray.is_initialized():
            os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
            ray.init(**init)


@contextmanager
def _explained() -> Iterator[None]:
    try:
        yield
    except (ConnectionError, RuntimeError, TypeError, ValueError) as error:  # whatever Ray raises
        why = str(error).strip().partition("\n")[0]
        raise UserError(f"hydra.launcher: {why} (hydra/launcher=slots needs no Ray)") from error


def _train(run: RemoteRun) -> Outcome:
    return run()


def _gpus(need: Need, asked: float | None) -> float:
    """Return the number of GPUs for a run: as configured, but one per device if it trains on several."""
    if need.accelerator == "cpu" or asked == 0:
        return 0
    if asked is None and need.accelerator == "auto" and not ray.cluster_resources().get("GPU"):
        return 0
    return need.devices if need.devices > 1 or asked is None else asked
