"""`hydra/sweeper=sweepfile`, the default: a multirun, its values drawn as a W&B sweep file says, or ending early.

Hydra's own sweeper composes every job to see whether that can be done, and a launcher composes it again.

Hydra imports this file at every start: what is heavy is imported when a sweep is launched.
"""

from collections.abc import Sequence

from hydra.core.plugins import Plugins
from hydra.core.utils import JobReturn
from hydra.plugins.launcher import Launcher
from hydra.plugins.sweeper import Sweeper
from hydra.types import HydraContext, TaskFunction
from omegaconf import DictConfig


class SweepFileSweeper(Sweeper):
    """Hands the runs to the launcher, all at once.

    Args:
        file: a sweep file with method random; None draws nothing.
        run_cap: how many runs at most.
        search_seed: the same seed draws the same runs.
    """

    def __init__(self, *, file: str | None, run_cap: int | None, search_seed: int) -> None:
        self.file, self.run_cap, self.search_seed = file, run_cap, search_seed
        self.launcher: Launcher

    def setup(self, *, hydra_context: HydraContext, task_function: TaskFunction, config: DictConfig) -> None:
        """Called by Hydra."""
        self.launcher = Plugins.instance().instantiate_launcher(
            hydra_context=hydra_context, task_function=task_function, config=config
        )

    def sweep(self, arguments: list[str]) -> list[Sequence[JobReturn]]:
        """Launch every run.

        Raises:
            UserError: the file asks for what cannot be drawn.
        """
        from etude.sweep.sweepfile import sweep_runs

        runs = sweep_runs(arguments, file=self.file, run_cap=self.run_cap, search_seed=self.search_seed)
        return [self.launcher.launch(runs, initial_job_idx=0)]
