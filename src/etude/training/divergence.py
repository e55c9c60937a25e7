"""Noticing at once that a training has come to what is no number, from where it does not return."""

import logging
from collections.abc import Iterable
from math import isfinite, nan
from typing import Any

from torch import nn

from etude.training.metrics_writers import Row
from etude.training.processes import whole

log = logging.getLogger(__name__)

_LOSSES = {"loss": "loss", "valid_loss": "validation loss"}  # columns, and how they are told


class Diverged(Exception):  # noqa: N818
    """A loss or a weight is no finite number; the message says which, and when."""

    def __init__(self, what: str, *, step: int, seconds: float) -> None:
        super().__init__(f"{what} at step {step}")
        self.step, self.seconds = step, seconds


def no_scores(metrics: Iterable[str]) -> dict[str, Any]:
    """What a run scored that was stopped because it diverged."""
    nothing = {"perplexity": nan, "tokens": 0}
    return {"valid": nothing, "test": nothing | dict.fromkeys(metrics, nan) | {"sentences": 0}}


class DivergenceWatch:
    """Looks at the losses of every row, behind the sinks that write them down.

    Args:
        stop: whether to raise `Diverged`, or to say so once and go on.
    """

    def __init__(self, *, stop: bool) -> None:
        self.stop = stop
        self._told = False

    def write(self, row: Row) -> None:
        """Raise, or say.

        Raises:
            Diverged: a loss is not finite.
        """
        for column, name in _LOSSES.items():
            if column in row and not isfinite(row[column]):
                self._diverged(Diverged(f"the {name} is {row[column]}", step=row["step"], seconds=row["seconds"]))

    def _diverged(self, found: Diverged) -> None:
        if self.stop:
            raise found
        if not self._told:
            log.error("diverged: %s; going on, as trainer.stop_when_diverged=false says", found)
        self._told = True


def all_finite(model: nn.Module) -> bool:
    """Whether every weight is a finite number."""
    return all(bool(whole(weight.isfinite().all())) for weight in model.parameters())
