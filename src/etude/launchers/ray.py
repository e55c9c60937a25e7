"""Run the runs of a sweep as Ray tasks. Ray allocates cores, GPUs and fractions of GPUs on one machine or several."""

import logging
import os
import time
from collections.abc import Mapping, Sequence
from typing import Any

import ray

from etude.errors import UserError
from etude.launchers.job import Job
from etude.launchers.process import Command, train_command
from etude.launchers.remote import Outcome, Outcomes, RemoteRun, follow, remote_jobs
from etude.launchers.resources import Need
from etude.launchers.slots import conclude
from etude.runs.run_dir import RunDir

logger = logging.getLogger(__name__)


def run_as_tasks(
    run_dirs: Sequence[RunDir],
    *,
    init: Mapping[str, Any],
    num_cpus: float,
    num_gpus: float | None,
    max_retries: int,
    fail_fast: bool = False,
    command: Command = train_command,
) -> None:
    """Run all unfinished runs, as many at once as Ray has resources for.

    Args:
        run_dirs: frozen runs; a run that is listed twice is run once.
        init, num_cpus, num_gpus, max_retries, fail_fast: see `conf/hydra/launcher/ray.yaml`.
        command: makes the command line that trains one run.

    Raises:
        UserError: Ray cannot start or rejects an option.
        SweepFailed: at least one run ended without a result; without `fail_fast`, all the others were run.
        KeyboardInterrupt: Ctrl-C or SIGTERM; every run has stopped.
    """

    def launch(left: Sequence[Job]) -> Outcomes:
        try:
            if not ray.is_initialized():
                os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
                ray.init(**init)
            tasks = {_task(job, num_cpus, num_gpus, max_retries, command): job for job in left}
        except (ConnectionError, RuntimeError, TypeError, ValueError) as error:  # whatever Ray raises
            why = str(error).strip().partition("\n")[0]
            raise UserError(f"hydra.launcher: {why} (hydra/launcher=slots needs no Ray)") from error
        return _outcomes(tasks)

    jobs = remote_jobs(run_dirs)
    try:
        follow(jobs, launch, fail_fast=fail_fast)
    except KeyboardInterrupt:
        conclude(jobs, stopped=True)
    finally:
        ray.shutdown()


def _task(job: Job, num_cpus: float, num_gpus: float | None, max_retries: int, command: Command) -> Any:
    """Submit one run with the resources it needs; return Ray's reference to its outcome."""
    need = Need.of(job.config)
    gpus = _gpus(need, num_gpus)
    for kind, asked in (("CPU", num_cpus), ("GPU", gpus)):
        there = ray.cluster_resources().get(kind, 0)
        if asked > there:
            logger.warning("%s asks for %g %ss and Ray has %g: it waits for more", job.name, asked, kind, there)
    threads = max(1, int(num_cpus) // need.devices)
    run = RemoteRun(job.run_dir, threads, None if gpus else (), command=command, config=job.launched_config)
    asking = ray.remote(num_cpus=num_cpus, num_gpus=gpus, max_retries=max_retries)
    return asking(_train).options(name=job.name).remote(run)


def _train(run: RemoteRun) -> Outcome:
    return run()


def _gpus(need: Need, asked: float | None) -> float:
    """Return the number of GPUs for a run: as configured, but one per device if it trains on several."""
    if need.accelerator == "cpu" or asked == 0:
        return 0
    if asked is None and need.accelerator == "auto" and not ray.cluster_resources().get("GPU"):
        return 0
    return need.devices if need.devices > 1 or asked is None else asked


def _outcomes(tasks: dict[Any, Job]) -> Outcomes:
    """Yield each run with its outcome as it ends; when closed early, stop the remaining runs and wait for them."""
    began = time.time()
    left = dict(tasks)
    try:
        while left:
            (task,), _ = ray.wait([*left])
            try:
                outcome = ray.get(task)
            except ray.exceptions.RayError as error:
                outcome = Outcome(began, time.time(), f"Ray gave it up: {str(error).strip().splitlines()[-1]}")
            yield left.pop(task), outcome
    finally:
        if left:
            logger.warning("stopping %d runs, which write their checkpoints; Ctrl-C again ends them at once", len(left))
            for task in left:
                ray.cancel(task)
            ray.wait([*left], num_returns=len(left))
