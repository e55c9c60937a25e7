"""`hydra/launcher=slots`: a multirun's jobs side by side, each in a process of its own.

Hydra imports this file at every start: what is heavy is imported when a sweep is launched.
"""

import logging
from collections.abc import Sequence

from hydra.core.hydra_config import HydraConfig
from hydra.core.utils import JobReturn, JobStatus
from hydra.plugins.launcher import Launcher
from hydra.types import HydraContext, TaskFunction
from omegaconf import DictConfig, open_dict

logger = logging.getLogger(__name__)


class SlotsLauncher(Launcher):
    """Freezes the config of every job first, so that no later edit of a YAML file reaches them, then runs them.

    Args:
        workers: how many runs at once; "auto" for usable cores / threads.
        threads: how many cores each run may use.
    """

    def __init__(self, *, workers: int | str, threads: int) -> None:
        self.workers = workers
        self.threads = threads

    def setup(self, *, hydra_context: HydraContext, task_function: TaskFunction, config: DictConfig) -> None:
        """Called by Hydra; the task function is not used: each run is a process that reads its frozen config."""
        from etude.logs import logging_to

        logging_to(None)
        logger.info("composing the config of every run")
        self.hydra_context = hydra_context
        self.config = config

    def launch(self, job_overrides: Sequence[Sequence[str]], initial_job_idx: int) -> Sequence[JobReturn]:
        """Run every job that is not finished yet.

        Raises:
            UserError: a config is not sound; nothing was started.
            SweepFailed: some runs failed; the others are finished.
        """
        from etude.config.identity import freeze
        from etude.sweep.slots import run_side_by_side, slots

        at_once = slots(self.workers, self.threads)
        outside = HydraConfig.instance().cfg
        run_dirs = []
        try:
            for number, overrides in enumerate(job_overrides, start=initial_job_idx):
                config = self.hydra_context.config_loader.load_sweep_config(self.config, list(overrides))
                with open_dict(config):
                    config.hydra.job.id = config.hydra.job.num = number
                HydraConfig.instance().set_config(config)
                run_dirs.append(freeze(config))
        finally:
            HydraConfig.instance().cfg = outside
        run_side_by_side(run_dirs, workers=at_once, threads=self.threads)
        return [
            JobReturn(overrides=list(overrides), working_dir=str(run_dir.path), status=JobStatus.COMPLETED)
            for overrides, run_dir in zip(job_overrides, run_dirs, strict=True)
        ]
