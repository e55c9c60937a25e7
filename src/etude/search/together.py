"""Several searches at once, such as one for each arm of a study: they are asked for a trial in turn."""

from collections import deque
from collections.abc import Iterable
from typing import TYPE_CHECKING

from etude.store.run_dir import RunDir
from etude.store.run_state import State

if TYPE_CHECKING:
    from etude.search.engine import Engine


class Together:
    """The source of a sweep whose runs are those of several searches.

    Args:
        engines: those of the searches.
    """

    def __init__(self, engines: "Iterable[Engine]") -> None:
        self.engines = deque(engines)

    def more(self, room: int) -> list[tuple[RunDir, str]]:
        """Return up to `room` runs to be trained now, of each search as many as of the others, as long as it has some.

        Raises:
            UserError: a search cannot go on.
        """
        found: list[tuple[RunDir, str]] = []
        idle = 0  # searches in a row that have nothing now
        while len(found) < room and idle < len(self.engines):
            given = self.engines[0].more(1)
            self.engines.rotate(-1)
            found += given
            idle = 0 if given else idle + 1
        return found

    def watch(self) -> None:
        """Look at the runs that are being trained."""
        for engine in self.engines:
            engine.watch()

    def figures(self) -> dict[RunDir, dict[str, str]]:
        """Return what the live table shows of each run."""
        return {run: shown for engine in self.engines for run, shown in engine.figures().items()}

    def ended(self, run: RunDir, state: State, reason: str = "") -> None:
        """Take note of how a run has ended."""
        for engine in self.engines:
            engine.ended(run, state, reason)
