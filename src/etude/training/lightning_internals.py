"""The private names of Lightning that étude uses, all of them: the reason why pyproject.toml caps its minor version."""

from typing import Any

from lightning import Trainer
from lightning.pytorch.callbacks import WeightAveraging
from torch import nn


def keep_sigterm_to_itself(trainer: Trainer) -> None:
    """Keep Lightning from broadcasting at every step whether rank 0 got SIGTERM: `StopWhenAsked` handles signals."""
    trainer.fit_loop.epoch_loop._broadcast_sigterm_tensor = lambda: None  # type: ignore[method-assign]


def averaged_module(callback: WeightAveraging) -> nn.Module | None:
    """Return the average that a callback keeps of the trained module; None before it is set up for training."""
    return None if callback._average_model is None else callback._average_model.module


def set_updates(fit_loop: dict[str, Any], updates: int) -> None:
    """Set the number of updates at which callbacks log, in the state of a loop in a checkpoint."""
    if "epoch_loop.state_dict" in fit_loop:
        fit_loop["epoch_loop.state_dict"]["_batches_that_stepped"] = updates
