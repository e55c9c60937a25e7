"""The launchers of étude: `hydra/launcher=slots`, `submitit_slurm` and `ray`.

Each first freezes the config of every job, so that no later edit of a YAML file counts.

Hydra imports this file at every start: what is heavy is imported when a sweep is launched.
"""

import logging
from abc import abstractmethod
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from hydra.core.hydra_config import HydraConfig
from hydra.core.utils import JobReturn, JobStatus, env_override
from hydra.plugins.launcher import Launcher
from hydra.types import HydraContext, TaskFunction
from omegaconf import DictConfig, open_dict

if TYPE_CHECKING:
    from etude.runs.run_dir import RunDir

logger = logging.getLogger(__name__)


class FrozenLauncher(Launcher):
    """A launcher whose jobs are frozen runs; where they run is its children's matter.

    Args:
        options: what the launcher's file in `conf/hydra/launcher` says.
    """

    needs: ClassVar[tuple[str, str] | None] = None  # a package that is no part of étude, and the extra that brings it

    def __init__(self, **options: Any) -> None:
        self.options = options

    def setup(self, *, hydra_context: HydraContext, task_function: TaskFunction, config: DictConfig) -> None:
        """Called by Hydra; the task function is not called: each run is a process that reads its frozen config.

        Raises:
            UserError: a package is not installed.
        """
        from etude.errors import UserError
        from etude.logs import logging_to

        if self.needs and find_spec(self.needs[0].lower()) is None:
            package, extra = self.needs
            name = config.hydra.runtime.choices["hydra/launcher"]
            raise UserError(f"hydra/launcher={name} needs {package}: pip install 'etude[{extra}]'")
        logging_to(None)
        logger.info("composing the config of every run")
        self.hydra_context = hydra_context
        self.task_function = task_function
        self.config = config

    def launch(self, job_overrides: Sequence[Sequence[str]], initial_job_idx: int) -> Sequence[JobReturn]:
        """Run every job that is not finished yet, with Hydra's callbacks told before the first and after the last.

        Returns:
            Of each job its objective; of those that ended without a result, what ended them.

        Raises:
            UserError: a config is not sound; nothing was started.
        """
        from etude.launchers.shared import notes_on_shared
        from etude.launchers.slots import SweepFailed
        from etude.runs.provenance import code_changed

        callbacks = self.hydra_context.callbacks
        Path(self.config.hydra.sweep.dir).mkdir(parents=True, exist_ok=True)  # sweepers write what they found there
        run_dirs = self._freeze(job_overrides)
        for note in notes_on_shared(job_overrides, run_dirs):
            logger.info(note)
        begun = [run for run in run_dirs if run.environment_file.exists()]
        if other := [run.finished for run in begun if code_changed(run, run.config())]:
            kept = f"{sum(other)} finished, {len(other) - sum(other)} half-finished"
            logger.warning("runs of other code than today's, which are kept: %s; stale=rerun starts anew", kept)
        configs = [self._compose(overrides) for overrides in job_overrides] if callbacks.callbacks else []
        failure: SweepFailed | None = None
        with env_override(self.config.hydra.job.env_set):
            for config in configs:
                callbacks.on_job_start(config=config, task_function=self.task_function)
            try:
                self.run(run_dirs)
            except SweepFailed as failed:
                failure = failed
        returns = [self._make_return(*job, failure) for job in zip(job_overrides, run_dirs, strict=True)]
        for config, job_return in zip(configs, returns, strict=False):
            callbacks.on_job_end(config=config, job_return=job_return)
        return returns

    def _make_return(self, overrides: Sequence[str], run_dir: "RunDir", failure: Exception | None) -> JobReturn:
        """What Hydra's sweepers and callbacks are told of a job; nothing where nobody waited for its end."""
        from etude.runs.objective import objective

        made = JobReturn(
            overrides=list(overrides),
            working_dir=str(run_dir.path),
            task_name=self.config.hydra.job.name,
            status=JobStatus.COMPLETED,
        )
        if run_dir.finished:
            made.return_value = objective(run_dir.result(), self.config)
        elif failure:
            made.status, made.return_value = JobStatus.FAILED, failure
        return made

    @abstractmethod
    def run(self, run_dirs: "Sequence[RunDir]") -> None:
        """Run all that are not finished."""

    def _freeze(self, jobs: Sequence[Sequence[str]]) -> "list[RunDir]":
        from etude.config.identity import freeze_all
        from etude.tasks.metrics import add_missing_metrics

        outside = HydraConfig.instance().cfg
        try:
            return freeze_all(jobs, self._compose, add_missing_metrics)
        finally:
            HydraConfig.instance().cfg = outside

    def _compose(self, overrides: Sequence[str]) -> DictConfig:
        """The config of one job, with Hydra's own node."""
        config = self.hydra_context.config_loader.load_sweep_config(self.config, list(overrides))
        with open_dict(config):
            config.hydra.job.id = config.hydra.job.num = 0  # a run has no number: it is known by its config
        HydraConfig.instance().set_config(config)
        return config


class SlotsLauncher(FrozenLauncher):
    """Gives every run a slot of this machine: a GPU, a share of one, several of them, or cores."""

    def launch(self, job_overrides: Sequence[Sequence[str]], initial_job_idx: int) -> Sequence[JobReturn]:
        """Run every job that is not finished yet.

        Raises:
            UserError: an option or a config is not sound, or asks for more than there is; nothing was started.
        """
        from etude.launchers.options import Options

        self._checked = Options(**self.options)
        self._slots = self._checked.slots()
        devices = self._checked.devices_per_run
        for_all = [] if devices is None else [f"trainer.devices={devices}"]
        return super().launch([[*overrides, *for_all] for overrides in job_overrides], initial_job_idx)

    def run(self, run_dirs: "Sequence[RunDir]") -> None:
        """Run all that are not finished, as many at once as there are slots."""
        from etude.launchers.slots import run_side_by_side

        run_side_by_side(run_dirs, self._slots, **self._checked.run_arguments)


class SubmititLauncher(FrozenLauncher):
    """Hands every run to SLURM, through submitit, as a job of its own."""

    needs = ("submitit", "slurm")

    def run(self, run_dirs: "Sequence[RunDir]") -> None:
        """Submit all that are not finished, and see them through."""
        from etude.launchers.slurm import run_as_jobs

        run_as_jobs(run_dirs, **self.options)


class RayLauncher(FrozenLauncher):
    """Hands every run to a Ray cluster, or to Ray on this machine, as a task of its own."""

    needs = ("Ray", "ray")

    def run(self, run_dirs: "Sequence[RunDir]") -> None:
        """Run all that are not finished."""
        from etude.launchers.ray import run_as_tasks

        run_as_tasks(run_dirs, **self.options)
