"""Detect a diverged training, whose loss or weights are NaN or infinite, as soon as it happens."""

import logging
from collections.abc import Iterable
from math import isfinite, nan
from typing import Any

from torch import nn

from etude.training.metrics_writers import Row

log = logging.getLogger(__name__)

_LOSSES = {"loss": "loss", "valid_loss": "validation loss"}  # column -> its name in messages


class Diverged(Exception):  # noqa: N818
    """A loss or a weight is not finite; the message says which, and at which step."""

    def __init__(self, what: str, *, step: int, seconds: float) -> None:
        super().__init__(f"{what} at step {step}")
        self.step, self.seconds = step, seconds


def no_scores(metrics: Iterable[str]) -> dict[str, Any]:
    """Return the scores of a run that was stopped because it diverged: NaN for every metric."""
    nothing = {"perplexity": nan, "tokens": 0}
    scores = nothing | dict.fromkeys(metrics, nan) | {"sentences": 0}
    return {"valid": nothing, "test": scores, "early": {"perplexity": nan}}


class DivergenceWatch:
    """A sink that checks the losses of every row; it comes after the sinks that write them.

    Args:
        stop: whether to raise `Diverged`; else an error is logged once and training goes on.
    """

    def __init__(self, *, stop: bool) -> None:
        self.stop = stop
        self._reported = False

    def write(self, row: Row) -> None:
        """Check the losses of a row.

        Raises:
            Diverged: a loss is not finite, and `stop` is true.
        """
        for column, name in _LOSSES.items():
            if column in row and not isfinite(row[column]):
                self._report(Diverged(f"the {name} is {row[column]}", step=row["step"], seconds=row["seconds"]))

    def _report(self, found: Diverged) -> None:
        if self.stop:
            raise found
        if not self._reported:
            log.error("diverged: %s; going on, as trainer.stop_when_diverged=false says", found)
        self._reported = True


def all_finite(model: nn.Module) -> bool:
    """Tell whether every weight is finite."""
    return all(bool(weight.isfinite().all()) for weight in model.parameters())
