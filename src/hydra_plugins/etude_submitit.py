"""`hydra/launcher=submitit_slurm`: a multirun's jobs under SLURM, through submitit.

Hydra imports this file at every start: what is heavy is imported when a sweep is launched.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from hydra_plugins._etude_frozen import FrozenLauncher

if TYPE_CHECKING:
    from etude.runs.run_dir import RunDir


class SubmititLauncher(FrozenLauncher):
    """Hands every run to submitit as a job of its own."""

    needs = ("submitit", "slurm")

    def run(self, run_dirs: "Sequence[RunDir]") -> None:
        """Submit all that are not finished, and see them through."""
        from etude.launchers.slurm import run_as_jobs

        run_as_jobs(run_dirs, **self.options)
