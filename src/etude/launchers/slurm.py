"""Run the runs of a sweep as SLURM jobs through submitit: one job per run, requeued on preemption or time-out."""

import json
import logging
import os
import signal
import time
from collections import defaultdict
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from typing import Any

import submitit
from submitit.core.utils import UncompletedJobError
from submitit.helpers import DelayedSubmission

from etude.errors import UserError
from etude.files import look_again, write_json
from etude.launchers.job import Job
from etude.launchers.process import Command, train_command
from etude.launchers.remote import Outcome, Outcomes, RemoteRun, follow, remote_jobs
from etude.launchers.resources import Need
from etude.launchers.slots import SweepFailed, conclude, startable
from etude.launchers.slurm_queue import Queue, queued_jobs
from etude.runs.run_dir import RunDir
from etude.runs.run_state import State

logger = logging.getLogger(__name__)

Submitted = dict[submitit.Job[Outcome], Job]

_GENERAL = ("name", "timeout_min", "mem_gb")  # submitit's options for every cluster; the others are SLURM's
_REQUEUE = 30.0  # seconds that requeueing a job may take
_GRACE_TIME = 3600.0  # seconds; longer than the grace time that clusters give a preempted job
_POLL_INTERVAL = 1.0  # seconds
_NOTE = "job.json"  # in the directory of a run: its SLURM job
_OF_THE_SITE = {"SLURM_CONF", "SLURM_CONF_SERVER", "SLURM_JWT", "SLURM_CLUSTERS"}  # which cluster, and who asks
_ARRAY = 1000  # tasks of one array: SLURM takes 1,001 where nobody has set MaxArraySize


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
    found: Submitted = {}

    def launch(left: Sequence[Job]) -> Outcomes:
        new = [job for job in left if job not in submitted.values()]
        submitted.update(submit(new, cluster=cluster, command=command, **options))
        return outcomes(submitted)

    left = [job for job in jobs if job.state is State.WAITING]
    if cluster == "slurm":
        found = find_submitted(left)
        submitted.update(found)
        left.sort(key=lambda job: job not in found.values())  # what they train, others need not
    if not wait_for_completion:
        first = startable(left, [])
        launch(first)
        if shared := sum(job not in first and job not in found.values() for job in left):
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
        if not submitted or cluster == "local":  # the rest is other processes', or has been interrupted, too
            conclude(jobs, stopped=True)
        ends = _cancel(submitted, found)
        raise KeyboardInterrupt(f"the jobs go on: etude status shows them, {ends} ends them") from None


def find_submitted(jobs: Sequence[Job]) -> Submitted:
    """Find the runs that an earlier launch submitted and whose SLURM jobs are pending or running."""
    noted: Submitted = {}
    for job in jobs:
        with suppress(OSError, ValueError):  # no job.json, or not a valid one
            noted[submitit.SlurmJob(**json.loads((job.run_dir.path / _NOTE).read_text(encoding="utf-8")))] = job
    queued = queued_jobs() if noted else ()
    submitted = {task: job for task, job in noted.items() if task.job_id in queued}
    if submitted:
        logger.info("in the queue already: %d jobs; %s ends them", len(submitted), _cancel(submitted, submitted))
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
    whole = {"signal_delay_s": signal_delay_s, "max_num_timeout": max_num_timeout, "cpus_per_task": cpus_per_task or 1}
    for key, value in (whole | {"gpus_per_node": gpus_per_node or 0}).items():
        if type(value) is not int or value < 0:
            raise UserError(f"hydra.launcher.{key}={value}: it must be a whole number, 0 or more")
    if not isinstance(options.get("setup") or [], list):
        raise UserError(f"hydra.launcher.setup={options['setup']}: it must be a list, such as ['module load cuda']")
    alike: defaultdict[tuple[int, int], list[Job]] = defaultdict(list)
    for job in jobs:
        need = Need.of(job.config)
        usable = 0 if need.accelerator == "cpu" else need.devices
        alike[need.devices, usable if gpus_per_node is None else gpus_per_node].append(job)
    grace = max(signal_delay_s - _REQUEUE, signal_delay_s / 2)
    asked = {name if name in _GENERAL else f"slurm_{name}": value for name, value in options.items()}
    asked |= {"cpus_per_task": cpus_per_task, "slurm_signal_delay_s": signal_delay_s}
    if cpus_per_task:  # srun would take one core
        asked["slurm_srun_args"] = [*(asked.get("slurm_srun_args") or ()), f"--cpus-per-task={cpus_per_task}"]
    retries = {f"{cluster}_max_num_timeout": max_num_timeout}
    arrays = [(*need, group[n : n + _ARRAY]) for need, group in alike.items() for n in range(0, len(group), _ARRAY)]
    submitted: Submitted = {}
    try:
        for devices, gpus, group in arrays:
            executor = submitit.AutoExecutor(submitit_folder, cluster=cluster, **retries)
            executor.update_parameters(gpus_per_node=gpus or None, **asked)
            threads = max(1, (cpus_per_task or 1) // devices)
            runs = [
                Preemptible(job.run_dir, threads, grace=grace, command=command, config=job.launched_config)
                for job in group
            ]
            with _outside_of_jobs():
                tasks = executor.submit_array(runs)
            for task, job in zip(tasks, group, strict=True):
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
    began, queue = time.time(), Queue()
    while submitted:
        for task in [*submitted]:
            if _has_result(task):
                outcome = _result(task, began)
            elif queue.has_left(task.job_id) if isinstance(task, submitit.SlurmJob) else task.done():
                outcome = Outcome(began, time.time(), _without_result(task))
            else:
                continue
            yield submitted.pop(task), outcome
        time.sleep(_POLL_INTERVAL)


def _has_result(task: "submitit.Job[Outcome]") -> bool:
    look_again(task.paths.folder)
    return task.paths.result_pickle.exists()


def _result(task: "submitit.Job[Outcome]", began: float) -> Outcome:
    try:
        return task.result()
    except UncompletedJobError:
        return Outcome(began, time.time(), _without_result(task))


def _without_result(task: "submitit.Job[Outcome]") -> str:
    state = task.state  # of SLURM's accounting, where there is any
    return f"job {task.job_id} ended without a result{f' ({state})' * (state != 'UNKNOWN')}, see {task.paths.stderr}"


@contextmanager
def _outside_of_jobs() -> Iterator[None]:
    """Hide the variables of a job in which this process runs: sbatch and submitit would take them for the new one's."""
    names = [name for name in os.environ if name.startswith("SLURM_") and name not in _OF_THE_SITE]
    hidden = {name: os.environ.pop(name) for name in names}
    try:
        yield
    finally:
        os.environ.update(hidden)


def _cancel(submitted: Submitted, found: Collection["submitit.Job[Outcome]"] = ()) -> str:
    """Return the command that cancels the jobs: an array as a whole, but of the `found` ones only our own tasks."""
    program = "kill" if any(isinstance(task, submitit.LocalJob) for task in submitted) else "scancel"
    ids = (task.job_id if task in found else task.job_id.partition("_")[0] for task in submitted)
    return " ".join([program, *dict.fromkeys(ids)])
