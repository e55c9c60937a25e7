"""Run the runs of a sweep as SLURM jobs through submitit: one job per run, requeued on preemption or time-out."""

import json
import logging
import os
import signal
import time
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from typing import Any

import submitit
from submitit.core.utils import UncompletedJobError
from submitit.helpers import DelayedSubmission

from etude.errors import UserError
from etude.files import look_again, write_json
from etude.launch.dashboard import Dashboard
from etude.launch.interrupts import Interrupts
from etude.launch.job import Job
from etude.launch.options import check_flags
from etude.launch.process import Command, train_command
from etude.launch.remote import Outcome, RemoteRun, remote_jobs, settle
from etude.launch.resources import Need
from etude.launch.slurm_queue import Queue, queued_jobs
from etude.launch.sweep import NOTHING_MORE, Source, run_all, startable
from etude.store.run_dir import RunDir
from etude.store.run_state import State

logger = logging.getLogger(__name__)

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
    wait_for_completion: bool,
    fail_fast: bool = False,
    source: Source = NOTHING_MORE,
    at_once: int | None = None,
    **options: Any,
) -> None:
    """Submit all runs that are neither finished nor in SLURM's queue, and wait for all if `wait_for_completion`.

    Args:
        run_dirs: frozen runs; a run that is listed twice is run once.
        wait_for_completion, fail_fast: see `conf/hydra/launcher/submitit_slurm.yaml`.
        source: where further runs come from.
        at_once: how many of these there may be in the queue at once.
        options: the arguments of `SubmititLauncher`.

    Raises:
        UserError: submitit or the cluster rejects the jobs.
        SweepFailed: at least one run ended without a result.
        KeyboardInterrupt: Ctrl-C while waiting; the SLURM jobs go on.
    """
    check_flags(wait_for_completion=wait_for_completion, fail_fast=fail_fast)
    if source is not NOTHING_MORE and not (wait_for_completion and at_once):
        raise UserError(
            "a search on SLURM needs n_jobs, the number of jobs that it may have in the queue at once, and "
            "hydra.launcher.wait_for_completion=true, for it decides by what the runs show"
        )
    jobs, launcher = remote_jobs(run_dirs), SubmititLauncher(**options)
    left = [job for job in jobs if job.state is State.WAITING]
    found = launcher.find_submitted(left)
    if not wait_for_completion:
        new = [job for job in left if job not in found]
        first = startable(new, found)
        launcher.submit(first)
        if shared := len(new) - len(first):
            logger.warning(
                "left out: %d runs that need what others train; submit the same sweep again after those", shared
            )
        return
    try:
        outlives = launcher.cluster == "slurm"
        run_all(
            *(jobs, launcher),
            running=found,
            outlives=outlives,
            fail_fast=fail_fast,
            source=source,
            at_once=at_once or 1,
        )
    except KeyboardInterrupt:
        if launcher.cluster == "local" or not launcher.tasks:  # the rest is other processes'
            raise
        raise KeyboardInterrupt(f"the jobs go on: etude status shows them, {launcher.ends(found)} ends them") from None


class SubmititLauncher:
    """Submits each run as a job of SLURM's, or with `cluster="local"` as a process of this machine.

    Args:
        cluster, submitit_folder, gpus_per_node, cpus_per_task, signal_delay_s, max_num_timeout, options: see
            `conf/hydra/launcher/submitit_slurm.yaml`.
        command: makes the command line that trains one run.

    Raises:
        UserError: an option is not valid.
    """

    is_here = False

    def __init__(
        self,
        *,
        cluster: str,
        submitit_folder: str,
        gpus_per_node: int | None,
        cpus_per_task: int | None,
        signal_delay_s: int,
        max_num_timeout: int,
        command: Command = train_command,
        **options: Any,
    ) -> None:
        whole = {"signal_delay_s": signal_delay_s, "max_num_timeout": max_num_timeout}
        for key, value in (whole | {"cpus_per_task": cpus_per_task or 1, "gpus_per_node": gpus_per_node or 0}).items():
            if type(value) is not int or value < 0:
                raise UserError(f"hydra.launcher.{key}={value}: it must be a whole number, 0 or more")
        if not isinstance(options.get("setup") or [], list):
            raise UserError(f"hydra.launcher.setup={options['setup']}: it must be a list, such as ['module load cuda']")
        self.cluster, self.folder, self.gpus_per_node, self.command = cluster, submitit_folder, gpus_per_node, command
        self.cores = cpus_per_task or 1
        self.grace = max(signal_delay_s - _REQUEUE, signal_delay_s / 2)
        self.retries = {f"{cluster}_max_num_timeout": max_num_timeout}
        self.asked = {name if name in _GENERAL else f"slurm_{name}": value for name, value in options.items()}
        self.asked |= {"cpus_per_task": cpus_per_task, "slurm_signal_delay_s": signal_delay_s}
        if cpus_per_task:  # srun would take one core
            more = self.asked.get("slurm_srun_args") or ()
            self.asked["slurm_srun_args"] = [*more, f"--cpus-per-task={cpus_per_task}"]
        self.tasks: dict[submitit.Job[Outcome], Job] = {}
        self._began, self._queue = time.time(), Queue()

    def find_submitted(self, jobs: Sequence[Job]) -> list[Job]:
        """Find the runs that an earlier launch submitted and whose SLURM jobs are pending or running."""
        noted: dict[submitit.Job[Outcome], Job] = {}
        for job in jobs if self.cluster == "slurm" else ():
            with suppress(OSError, ValueError):  # no job.json, or not a valid one
                noted[submitit.SlurmJob(**json.loads((job.run_dir.path / _NOTE).read_text(encoding="utf-8")))] = job
        queued = queued_jobs() if noted else ()
        # A job that has its result stays in the queue for a moment, while a search lets the run go on already.
        found = {task: job for task, job in noted.items() if task.job_id in queued and not _has_result(task)}
        self.tasks |= found
        if found:
            logger.info("in the queue already: %d jobs; %s ends them", len(found), self.ends(found.values()))
        return [*found.values()]

    def submit(self, jobs: Sequence[Job]) -> list[Job]:
        """Submit all runs, with one job array for those that need the same devices.

        Raises:
            UserError: submitit or the cluster rejects the jobs.
        """
        alike: defaultdict[tuple[int, int], list[Job]] = defaultdict(list)
        found = self.find_submitted(jobs)
        for job in jobs:
            job.refresh_state()
            if job in found:
                job.state = State.RUNNING
            if job.state is State.WAITING:
                need = Need.of(job.config)
                usable = 0 if need.accelerator == "cpu" else need.devices
                alike[need.devices, usable if self.gpus_per_node is None else self.gpus_per_node].append(job)
        before = {*self.tasks}
        try:
            for (devices, gpus), group in alike.items():
                for start in range(0, len(group), _ARRAY):
                    self._submit_array(group[start : start + _ARRAY], devices, gpus)
        except (AssertionError, NameError, RuntimeError, TypeError, ValueError) as error:  # whatever submitit raises
            why = str(error).strip().partition("\n")[0]
            others = f"; {len(self.tasks)} jobs were submitted before, {self.ends()} ends them" if self.tasks else ""
            raise UserError(f"hydra.launcher: {why} (hydra/launcher=slots needs no cluster){others}") from error
        if new := [job for task, job in self.tasks.items() if task not in before]:
            logger.info("submitted %d jobs; %s ends them", len(new), self.ends(but=before))
        return [*jobs]

    def _submit_array(self, jobs: Sequence[Job], devices: int, gpus: int) -> None:
        executor = submitit.AutoExecutor(self.folder, cluster=self.cluster, **self.retries)
        executor.update_parameters(gpus_per_node=gpus or None, **self.asked)
        threads = max(1, self.cores // devices)
        runs = [
            Preemptible(job.run_dir, threads, grace=self.grace, command=self.command, config=job.launched_config)
            for job in jobs
        ]
        with _outside_of_jobs():
            tasks = executor.submit_array(runs)
        for task, job in zip(tasks, jobs, strict=True):
            self.tasks[task], job.state = job, State.RUNNING
            write_json(job.run_dir.path / _NOTE, {"folder": str(task.paths.folder), "job_id": task.job_id})

    def wait(self, jobs: Sequence[Job], signals: Interrupts) -> list[Job]:
        """Wait for a second, and return the runs whose jobs have ended or have left the queue."""
        signals.wait(_POLL_INTERVAL)
        ended = []
        for task in [*self.tasks]:
            if _has_result(task):
                outcome = _result(task, self._began)
            elif self._queue.has_left(task.job_id) if isinstance(task, submitit.SlurmJob) else task.done():
                outcome = Outcome(self._began, time.time(), _without_result(task))
            else:
                continue
            ended.append(self.tasks.pop(task))
            settle(ended[-1], outcome)
        return ended

    def cancel(self, jobs: Sequence[Job], signals: Interrupts, show: Dashboard) -> None:
        """Cancel the jobs, whose runs write their checkpoints; do not wait for them."""
        for task in self.tasks:
            task.cancel()

    def ends(self, found: Iterable[Job] = (), *, but: Collection["submitit.Job[Outcome]"] = ()) -> str:
        """Return the command that cancels the jobs: an array as a whole, but of the `found` ones only our own tasks."""
        program = "kill" if self.cluster == "local" else "scancel"
        tasks = [(task.job_id, job) for task, job in self.tasks.items() if task not in but]
        ids = (id if job in found else id.partition("_")[0] for id, job in tasks)
        return " ".join([program, *dict.fromkeys(ids)])


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
