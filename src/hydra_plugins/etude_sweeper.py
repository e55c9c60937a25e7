"""`hydra/sweeper=sweepfile`, the default: a multirun, its values drawn as a W&B sweep file says, or ending early.

Hydra's own sweeper composes every job to see whether that can be done, and a launcher composes it again.

Hydra imports this file at every start: what is heavy is imported when a sweep is launched.
"""

import logging
from collections.abc import Sequence
from pathlib import Path

from hydra.core.plugins import Plugins
from hydra.core.utils import JobReturn, JobStatus
from hydra.plugins.launcher import Launcher
from hydra.plugins.sweeper import Sweeper
from hydra.types import HydraContext, TaskFunction
from omegaconf import DictConfig

logger = logging.getLogger(__name__)


class SweepFileSweeper(Sweeper):
    """Hands the runs to the launcher, all at once.

    Args:
        file: a sweep file with method random; None draws nothing.
        run_cap: how many runs at most.
        search_seed: the same seed draws the same runs.
        tuned: whether each arm of a study is run at its own best as well.
    """

    def __init__(self, *, file: str | None, run_cap: int | None, search_seed: int, tuned: bool) -> None:
        self.file, self.run_cap, self.search_seed, self.tuned = file, run_cap, search_seed, tuned
        self.launcher: Launcher

    def setup(self, *, hydra_context: HydraContext, task_function: TaskFunction, config: DictConfig) -> None:
        """Called by Hydra."""
        self.launcher = Plugins.instance().instantiate_launcher(
            hydra_context=hydra_context, task_function=task_function, config=config
        )

    def sweep(self, arguments: list[str]) -> list[Sequence[JobReturn]]:
        """Launch every run; of tuned arms first the trials.

        Raises:
            UserError: the file asks for what cannot be drawn, or the study does not say what to tune.
            SweepFailed: some runs failed; the others are finished.
        """
        from etude.search.sweep_file import sweep_runs

        runs = sweep_runs(arguments, file=self.file, run_cap=self.run_cap, search_seed=self.search_seed)
        if not self.tuned:
            return [self._launch(runs, 0)]
        from etude.runs.run_dir import RunDir
        from etude.search.tuning import at_their_best, trials, tuned_study

        study = tuned_study(runs)
        tried = trials(study, runs)
        first = self._launch(tried, 0)
        found = {tuple(run): RunDir(Path(str(done.working_dir))) for run, done in zip(tried, first, strict=True)}
        if not all(run.finished for run in found.values()):  # a launcher that does not wait has only submitted them
            logger.warning("the trials are not finished: typed again when they are, this runs each arm at its best")
            return [first, self._launch(runs, len(tried))]
        second = [*runs, *at_their_best(study, runs, found)]
        return [first, self._launch(second, len(tried))]

    def _launch(self, runs: Sequence[Sequence[str]], first: int) -> Sequence[JobReturn]:
        """Launch some runs, of which `first` is the number of the first one, and raise what ended one of them."""
        done = self.launcher.launch(runs, initial_job_idx=first)
        for job in done:
            if job.status is JobStatus.FAILED:
                raise job._return_value
        return done
