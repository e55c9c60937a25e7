"""The launchers of étude: `hydra/launcher=slots`, `submitit_slurm` and `ray`.

Each first freezes the config of every job, so that later edits of YAML files have no effect on the sweep.

Hydra imports this file at every start, so heavy modules are imported only when a sweep is launched.
"""

import logging
from abc import abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from hydra.core.hydra_config import HydraConfig
from hydra.core.utils import JobReturn, JobStatus, env_override
from hydra.plugins.launcher import Launcher
from hydra.types import HydraContext, TaskFunction
from omegaconf import DictConfig, open_dict

if TYPE_CHECKING:
    from optuna import Study

    from etude.search.search import Search
    from etude.store.run_dir import RunDir

logger = logging.getLogger(__name__)


@contextmanager
def _hydra_config_kept() -> Iterator[None]:
    """Restore Hydra's global config after the context."""
    outside = HydraConfig.instance().cfg
    try:
        yield
    finally:
        HydraConfig.instance().cfg = outside


class FrozenLauncher(Launcher):
    """Base class of the launchers: its jobs are frozen runs, and a subclass decides where they run.

    Args:
        options: the keys of the launcher's file in `conf/hydra/launcher`.
    """

    needs: ClassVar[tuple[str, str] | None] = None  # an optional package, and the extra of étude that installs it

    def __init__(self, **options: Any) -> None:
        self.options = options

    def setup(self, *, hydra_context: HydraContext, task_function: TaskFunction, config: DictConfig) -> None:
        """Receive the config from Hydra. The task function is never called: each run is a process of its own.

        Raises:
            UserError: a package that the launcher needs is not installed.
        """
        from etude.config.compose_cache import ConfigCache
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
        self._configs = ConfigCache(self._compose)  # of all jobs, as a search asks for one after the other

    def launch(self, job_overrides: Sequence[Sequence[str]], initial_job_idx: int) -> Sequence[JobReturn]:
        """Run all unfinished jobs; Hydra's callbacks are called for all jobs before the first and after the last.

        Returns:
            For each job its objective, or the error if it ended without a result.

        Raises:
            UserError: a config is not valid; nothing was started.
        """
        with env_override(self.config.hydra.job.env_set):  # configs, too, read the environment
            self.prepare()
            return self._launch(job_overrides)

    def search(self, *searches: "Search") -> "list[Study]":
        """Carry out searches, several at once: train their trials, each as soon as there is room for one.

        Returns:
            Optuna's study of each.

        Raises:
            UserError: a config is not valid, or the search cannot go on.
            SweepFailed: some runs failed.
        """
        from etude.files import typed_path
        from etude.search.engine import Engine
        from etude.search.together import Together

        with env_override(self.config.hydra.job.env_set):
            self.prepare()
            with _hydra_config_kept():
                configs = [self._compose(search.fixed) for search in searches]
            engines = [
                Engine(search, typed_path(config.runs_dir), config.study, self._freeze)
                for search, config in zip(searches, configs, strict=True)
            ]
            self.run([], source=Together(engines), at_once=searches[0].n_jobs)
        return [engine.journal.study for engine in engines]

    def prepare(self) -> None:
        """Check the options of the launcher.

        Raises:
            UserError: one is not valid.
        """

    def _launch(self, job_overrides: Sequence[Sequence[str]]) -> Sequence[JobReturn]:
        from etude.config.compose_cache import expand
        from etude.launch.sweep import SweepFailed
        from etude.store.provenance import Code, code_of_run
        from etude.store.run_state import write_stop

        if not job_overrides:
            expand(self.config.hydra.overrides.task)  # says which glob matches nothing
        callbacks = self.hydra_context.callbacks
        Path(self.config.hydra.sweep.dir).mkdir(parents=True, exist_ok=True)  # sweepers write their results there
        run_dirs = self._freeze(job_overrides)
        for run in run_dirs:
            write_stop(run, None)  # what a search has paused or pruned goes on to its end
        runs, trainings = len({*run_dirs}), len({run.own_training for run in run_dirs})
        if trainings < len(job_overrides):
            logger.info("jobs: %d, runs: %d, trainings: %d", len(job_overrides), runs, trainings)
        if other := [run.finished for run in run_dirs if code_of_run(run) not in (None, Code.SAME)]:
            kept = f"{sum(other)} finished, {len(other) - sum(other)} half-finished"
            logger.warning(
                "runs made by another version of the code, which are kept: %s; stale=rerun starts again", kept
            )
        configs = [self._compose(overrides) for overrides in job_overrides] if callbacks.callbacks else []
        failure: SweepFailed | None = None
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
        """Make what Hydra's sweepers and callbacks receive for a job; no value if the launcher did not wait for it."""
        from etude.store.objective import objective

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
    def run(self, run_dirs: "Sequence[RunDir]", **source: Any) -> None:
        """Run all unfinished runs; and those that a `source` gives, if there is one, so many `at_once`."""

    def _freeze(self, jobs: Sequence[Sequence[str]]) -> "list[RunDir]":
        from etude.config.freeze import freeze_all
        from etude.tasks.metrics import add_missing_metrics

        with _hydra_config_kept():
            return freeze_all(jobs, self._configs, add_missing_metrics)

    def _compose(self, overrides: Sequence[str]) -> DictConfig:
        """Compose the config of one job, with Hydra's own node."""
        from etude.config.quoting import make_readable

        words = make_readable(overrides)
        config = self.hydra_context.config_loader.load_sweep_config(self.config, words)
        with open_dict(config):
            config.hydra.job.id = config.hydra.job.num = 0  # a run is identified by its config, not by a number
        HydraConfig.instance().set_config(config)
        return config


class SlotsLauncher(FrozenLauncher):
    """Runs each run in a slot of this machine: a GPU, a share of one, several GPUs, or CPU cores."""

    def prepare(self) -> None:
        """Check the options, and make the slots.

        Raises:
            UserError: an option is not valid, or needs more than this machine has; nothing was started.
        """
        from etude.launch.options import Options

        self._checked = Options.of(self.options)
        self._slots = self._checked.slots()

    def _freeze(self, jobs: Sequence[Sequence[str]]) -> "list[RunDir]":
        devices = self._checked.devices_per_run
        for_all = [] if devices is None else [f"trainer.devices={devices}"]
        return super()._freeze([[*overrides, *for_all] for overrides in jobs])

    def run(self, run_dirs: "Sequence[RunDir]", **source: Any) -> None:
        """Run all unfinished runs, as many at once as there are slots."""
        from etude.launch.slots import run_side_by_side

        run_side_by_side(run_dirs, self._slots, **self._checked.run_arguments, **source)


class SubmititLauncher(FrozenLauncher):
    """Submits each run to SLURM as a separate job, through submitit."""

    needs = ("submitit", "slurm")

    def run(self, run_dirs: "Sequence[RunDir]", **source: Any) -> None:
        """Submit all unfinished runs, and wait for them if `wait_for_completion`."""
        from etude.launch.slurm import run_as_jobs

        run_as_jobs(run_dirs, **self.options, **source)


class RayLauncher(FrozenLauncher):
    """Submits each run as a separate task to a Ray cluster, or to Ray on this machine."""

    needs = ("Ray", "ray")
    keys: ClassVar[tuple[str, ...]] = ("init", "num_cpus", "num_gpus", "max_retries", "fail_fast")

    def run(self, run_dirs: "Sequence[RunDir]", **source: Any) -> None:
        """Run all unfinished runs."""
        from etude.launch.options import refuse_unknown
        from etude.launch.ray import run_as_tasks

        refuse_unknown(self.options, self.keys)
        run_as_tasks(run_dirs, **self.options, **source)
