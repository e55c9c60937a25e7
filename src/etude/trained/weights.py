"""The weights that a run ends with: of its last step, or the mean of the last checkpoints (section 6.1).

With `averaging.checkpoints: k` the weights of the last step and of k - 1 before it are kept, `averaging.every` steps
apart, a file each. Which steps these are follows from the config alone, so that a run that was killed and goes on keeps
the same ones. 0 keeps none.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from torch import nn

from etude.errors import UserError
from etude.runs.run_dir import RunDir
from etude.trained.checkpoint import model_weights, read_checkpoint


def averaged_checkpoints(run: RunDir, config: Mapping[str, Any]) -> dict[int, Path]:
    """The checkpoints whose mean a run ends with, step -> file, the oldest first; none where that is off."""
    checkpoints, every = config["averaging"]["checkpoints"], config["averaging"]["every"]
    max_steps = config["budget"]["max_steps"]
    first = max_steps - (checkpoints - 1) * every
    folder = run.checkpoint.parent
    return {step: folder / f"step-{step:08}.ckpt" for step in range(first, max_steps + 1, every)}


def mean_weights(files: Sequence[Path]) -> dict[str, torch.Tensor]:
    """The mean of the model's weights in some checkpoints, summed in double precision in the order given.

    Raises:
        UserError: one of them is missing or torn.
    """
    total: dict[str, torch.Tensor] = {}
    for file in files:
        weights = model_weights(read_checkpoint(file))
        # Not in place: of tied weights a checkpoint holds one tensor under several names.
        total = {name: total[name] + value if total else value.double() for name, value in weights.items()}
    return {name: (value / len(files)).to(weights[name].dtype) for name, value in total.items()}


def final_checkpoints(run: RunDir, config: Mapping[str, Any]) -> list[Path]:
    """The files whose mean a run ends with: its last, or where `callbacks.best_checkpoint` keeps it, its best."""
    best = "best_checkpoint" in config.get("callbacks", {})
    one = run.checkpoint.with_name("best.ckpt") if best else run.checkpoint
    return [*averaged_checkpoints(run, config).values()] or [one]


def final_weights(run: RunDir, config: Mapping[str, Any]) -> dict[str, torch.Tensor]:
    """The model's weights that a run ends with.

    Raises:
        UserError: a checkpoint is missing, because the run has not got there yet or someone deleted it, or is torn.
    """
    return mean_weights(final_checkpoints(run, config))


def load_weights(model: nn.Module, weights: Mapping[str, torch.Tensor]) -> None:
    """Give a model the weights that it had when they were saved.

    Raises:
        UserError: the classes of its parts have changed since, so that they do not fit.
    """
    try:
        model.load_state_dict(weights)
    except RuntimeError as error:
        _, *lines = str(error).splitlines()
        raise UserError(
            f"the weights of this run do not fit its model as it is now built ({lines[0].strip()}): go back to the "
            "code that trained them, or train again with stale=rerun"
        ) from error
