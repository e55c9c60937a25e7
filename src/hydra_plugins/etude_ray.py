"""`hydra/launcher=ray`: a multirun's jobs as tasks of a Ray cluster, or of Ray on this machine.

Hydra imports this file at every start: what is heavy is imported when a sweep is launched.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from hydra_plugins._etude_frozen import FrozenLauncher

if TYPE_CHECKING:
    from etude.runs.run_dir import RunDir


class RayLauncher(FrozenLauncher):
    """Hands every run to Ray as a task of its own."""

    needs = ("Ray", "ray")

    def run(self, run_dirs: "Sequence[RunDir]") -> None:
        """Run all that are not finished."""
        from etude.launchers.ray import run_as_tasks

        run_as_tasks(run_dirs, **self.options)
