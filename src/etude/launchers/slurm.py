"""Run the runs of a sweep as SLURM jobs through submitit: one job per run, requeued on preemption or time-out."""

import json
import logging
import os
import signal
import time
from collections import defaultdict
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

import submitit
from submitit.core.utils import UncompletedJobError
from submitit.helpers import DelayedSubmission, as_completed

from etude.errors import UserError
from etude.files import write_json
from etude.launchers.job import Command, Job, train_command
from etude.launchers.remote import Outcome, Outcomes, RemoteRun, follow, remote_jobs
from etude.launchers.resources import Need
from etude.launchers.slots import SweepFailed, conclude
from etude.runs.run_dir import RunDir
from etude.runs.run_state import State
from etude.runs.siblings import is_trained

logger = logging.getLogger(__name__)

Submitted = dict[submitit.Job[Outcome], Job]

_GENERAL = ("name", "timeout_min", "mem_gb")  # submitit's options for every cluster; the others are SLURM's
_REQUEUE = 30.0  # seconds that requeueing a job may take
_GRACE_TIME = 3600.0  # seconds; longer than the grace time that clusters give a preempted job
_POLL_INTERVAL = 1.0  # seconds
_NOTE = "job.json"  # in the directory of a run: its SLURM job
_ALIVE = {"PENDING", "CONFIGURING", "RUNNING", "SUSPENDED", "PREEMPTED", "REQUEUED", "COMPLETING"}  # SLURM's job states


@dataclass
class Preemptible(RemoteRun):
    """A run whose job may be preempted: it writes a checkpoint, and resumes from it when the job is requeued."""

    def __call__(self) -> Outcome:
        """Train until the run has ended.

        SLURM sends SIGTERM to a job that it ends, either for good (scancel) or to requeue it (PreemptMode=REQUEUE). The
        job cannot tell which. So the run stops, and this method then waits until SLURM kills the job: if the job exited
        by itself within the grace time of the cluster, it would count as completed and not be requeued.
        """
        signal.signal(signal.SIGTERM, lambda number, frame: self.ask_to_stop())
        outcome = super().__call__()
        if outcome.reason and self.stopping:
            time.sleep(_GRACE_TIME if os.environ.get("SUBMITIT_EXECUTOR") == "slurm" else self.grace)
        return outcome

    def checkpoint(self) -> DelayedSubmission:
        """Stop the run and return what to requeue. submitit calls this on its signal, before time-out or preemption."""
        self.stop()
        return DelayedSubmission(replace(self))


def run_as_jobs(
    run_dirs: Sequence[RunDir],
    *,
    cluster: str,
    wait_for_completion: bool,
    fail_fast: bool = False,
    command: Command = train_command,
    **options: Any,
) -> None:
    """Submit all runs that are neither finished nor in SLURM's queue, and wait for all if `wait_for_completion`.

    Args:
        run_dirs: frozen runs; a run that is listed twice is run once.
        cluster, wait_for_completion, fail_fast, options: see `conf/hydra/launcher/submitit_slurm.yaml`.
        command: makes the command line that trains one run.

    Raises:
        UserError: submitit or the cluster rejects the jobs.
        SweepFailed: at least one run ended without a result.
        KeyboardInterrupt: Ctrl-C while waiting; the SLURM jobs go on.
    """
    jobs = remote_jobs(run_dirs)
    submitted: Submitted = {}

    def launch(left: Sequence[Job]) -> Outcomes:
        new = [job for job in left if job not in submitted.values()]
        submitted.update(submit(new, cluster=cluster, command=command, **options))
        return outcomes(submitted)

    left = [job for job in jobs if job.state is State.WAITING]
    if cluster == "slurm":
        submitted.update(find_submitted(left))
    if not wait_for_completion:
        alone = [job.name if is_trained(job.run_dir) else job.run_dir.training or job.name for job in left]
        first = dict(zip(reversed(alone), reversed(left), strict=True))
        launch([job for job in left if job in first.values()])
        if shared := len(left) - len(first):
            logger.warning(
                "left out: %d runs that need what others train; submit the same sweep again after those", shared
            )
        return
    try:
        follow(jobs, launch, fail_fast=fail_fast)
    except SweepFailed:
        for task in submitted:  # empty unless fail_fast ended the sweep early
            task.cancel()
        raise
    except KeyboardInterrupt:
        if not submitted:  # the remaining runs belong to other processes
            conclude(jobs, stopped=True)
        raise KeyboardInterrupt(f"the jobs go on: etude status shows them, {_cancel(submitted)} ends them") from None


def find_submitted(jobs: Sequence[Job]) -> Submitted:
    """Find the runs that an earlier launch submitted and whose SLURM jobs are pending or running."""
    noted: Submitted = {}
    for job in jobs:
        with suppress(OSError, ValueError):  # no job.json, or not a valid one
            noted[submitit.SlurmJob(**json.loads((job.run_dir.path / _NOTE).read_text(encoding="utf-8")))] = job
    submitted = {task: job for task, job in noted.items() if task.watcher.get_state(task.job_id) in _ALIVE}
    if submitted:
        logger.info("in the queue already: %d jobs; %s ends them", len(submitted), _cancel(submitted))
    return submitted


def submit(
    jobs: Sequence[Job],
    *,
    cluster: str,
    submitit_folder: str,
    gpus_per_node: int | None,
    cpus_per_task: int | None,
    signal_delay_s: int,
    max_num_timeout: int,
    command: Command,
    **options: Any,
) -> Submitted:
    """Submit the runs, with one job array for all that need the same devices; arguments as in `run_as_jobs`.

    Raises:
        UserError: submitit or the cluster rejects the jobs.
    """
    alike: defaultdict[tuple[int, int], list[Job]] = defaultdict(list)
    for job in jobs:
        need = Need.of(job.config)
        usable = 0 if need.accelerator == "cpu" else need.devices
        alike[need.devices, usable if gpus_per_node is None else gpus_per_node].append(job)
    grace = max(signal_delay_s - _REQUEUE, signal_delay_s / 2)
    asked = {name if name in _GENERAL else f"slurm_{name}": value for name, value in options.items()}
    asked |= {"cpus_per_task": cpus_per_task, "slurm_signal_delay_s": signal_delay_s}
    retries = {f"{cluster}_max_num_timeout": max_num_timeout}
    submitted: Submitted = {}
    try:
        for (devices, gpus), group in alike.items():
            executor = submitit.AutoExecutor(submitit_folder, cluster=cluster, **retries)
            executor.update_parameters(gpus_per_node=gpus or None, **asked)
            threads = max(1, (cpus_per_task or 1) // devices)
            runs = [Preemptible(job.run_dir, threads, grace=grace, command=command) for job in group]
            for task, job in zip(executor.submit_array(runs), group, strict=True):
                submitted[task] = job
                write_json(job.run_dir.path / _NOTE, {"folder": str(task.paths.folder), "job_id": task.job_id})
    except (AssertionError, NameError, RuntimeError, TypeError, ValueError) as error:  # whatever submitit raises
        why = str(error).strip().partition("\n")[0]
        others = f"; {len(submitted)} jobs were submitted before, {_cancel(submitted)} ends them" if submitted else ""
        raise UserError(f"hydra.launcher: {why} (hydra/launcher=slots needs no cluster){others}") from error
    if submitted:
        logger.info("submitted %d jobs; %s ends them", len(submitted), _cancel(submitted))
    return submitted


def outcomes(submitted: Submitted) -> Outcomes:
    """Yield each run with its outcome as its job ends, and remove it from `submitted`."""
    began = time.time()
    for task in as_completed([*submitted], poll_frequency=_POLL_INTERVAL):
        try:
            outcome = task.result()
        except UncompletedJobError:
            why = f"job {task.job_id} ended without a result ({task.state}), see {task.paths.stderr}"
            outcome = Outcome(began, time.time(), why)
        yield submitted.pop(task), outcome


def _cancel(submitted: Submitted) -> str:
    """Return the command that cancels the jobs, with an array as one argument."""
    program = "kill" if any(isinstance(task, submitit.LocalJob) for task in submitted) else "scancel"
    return " ".join([program, *dict.fromkeys(task.job_id.partition("_")[0] for task in submitted)])
