"""`hydra/launcher=slots`: a multirun's jobs side by side on this machine, each in a process of its own.

Hydra imports this file at every start: what is heavy is imported when a sweep is launched.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from hydra.core.utils import JobReturn

from hydra_plugins._etude_frozen import FrozenLauncher

if TYPE_CHECKING:
    from etude.runs.run_dir import RunDir


class SlotsLauncher(FrozenLauncher):
    """Gives every run a slot: a GPU, a share of one, several of them, or cores."""

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

        run_side_by_side(run_dirs, self._slots, **self._checked.how)
