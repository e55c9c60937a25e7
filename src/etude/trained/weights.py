"""The final weights of a run: of its last step or its best validation, or the mean of its last checkpoints (6.1).

With `averaging.checkpoints: k` the weights of the last step and of k - 1 earlier ones are kept, `averaging.every` steps
apart, in a file each. These steps depend on the config alone, so that a run that was killed and resumed keeps the same
ones. 0 keeps none.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from torch import nn

from etude.errors import UserError
from etude.store.run_dir import RunDir
from etude.store.tested_weights import best_callbacks, tested_weights
from etude.store.training_dir import TrainingDir
from etude.trained.checkpoint import DamagedError, hash_weights, model_weights, newest_checkpoint, read_checkpoint

Place = RunDir | TrainingDir  # either knows where the checkpoints are


def averaged_checkpoints(run: Place, config: Mapping[str, Any]) -> dict[int, Path]:
    """Map steps to the checkpoint files that a run averages, the oldest first; empty if averaging is off."""
    checkpoints, every = config["averaging"]["checkpoints"], config["averaging"]["every"]
    max_steps = config["budget"]["max_steps"]
    first = max_steps - (checkpoints - 1) * every
    folder = run.checkpoint.parent
    return {step: folder / f"step-{step:08}.ckpt" for step in range(first, max_steps + 1, every)}


def mean_weights(files: Sequence[Path]) -> dict[str, torch.Tensor]:
    """Compute the mean of the model's weights in some checkpoints, summed in double precision in the given order.

    Raises:
        UserError: a checkpoint is missing or damaged.
    """
    total: dict[str, torch.Tensor] = {}
    for file in files:
        weights = model_weights(read_checkpoint(file))
        # Not in place, as a checkpoint holds tied weights as one tensor under several names.
        total = {name: total[name] + value if total else value.double() for name, value in weights.items()}
    return {name: (value / len(files)).to(weights[name].dtype) for name, value in total.items()}


def final_checkpoints(run: Place, config: Mapping[str, Any]) -> list[Path]:
    """List the checkpoints whose mean is a run's final weights.

    Unless these are an average, this is one file: the best checkpoint or the last.
    """
    tested = tested_weights(config)
    averaged = averaged_checkpoints(run, config) if tested == "average" else {}
    return [*averaged.values()] or [_best_checkpoint(run, config) if tested == "best" else run.checkpoint]


def _best_checkpoint(run: Place, config: Mapping[str, Any]) -> Path:
    """Return the file of the best checkpoint, which the state of Lightning's callback in the last one names.

    Raises:
        UserError: there is no last checkpoint, or the callback has not kept one yet.
    """
    [name, *_] = best_callbacks(config)
    monitored = config["callbacks"][name].get("monitor")
    states = read_checkpoint(run.checkpoint).get("callbacks", {}).values()
    kept = [state for state in states if isinstance(state, dict) and "best_model_path" in state]
    best = next((state["best_model_path"] for state in kept if state.get("monitor") == monitored), "best.ckpt")
    if not best:
        raise UserError(f"{run.path} has no best checkpoint before its first validation: weights=last takes the newest")
    return run.checkpoint.with_name(Path(best).name)  # the directory may have been moved


def final_weights(run: Place, config: Mapping[str, Any]) -> dict[str, torch.Tensor]:
    """Load the final weights of a run's model.

    Raises:
        UserError: a checkpoint is damaged or missing: not reached yet, never to be reached, or deleted.
    """
    files = averaged_checkpoints(run, config) if tested_weights(config) == "average" else {}
    if not all(file.is_file() for file in files.values()):
        step, ended, _ = newest_checkpoint(run.checkpoint)
        if ended and step < max(files):
            raise UserError(
                f"a callback has ended {run.path} at step {step}, and averaging.checkpoints={len(files)} reaches to "
                f"step {max(files)}: say averaging.checkpoints=0, or leave that callback out of callbacks=[...]"
            )
    return mean_weights(final_checkpoints(run, config))


def find_weights(training: TrainingDir, config: Mapping[str, Any]) -> dict[str, torch.Tensor] | None:
    """Load the final weights of a training that is complete; none if it diverged. None if it has to go on.

    It has to where its checkpoints are missing or damaged, or are not those that it ended with.
    """
    trained = training.trained
    if trained is None or trained["diverged"]:
        return None if trained is None else {}
    try:
        same = hash_weights(model_weights(read_checkpoint(training.checkpoint))) == trained["weights"]
        return final_weights(training, config) if same else None
    except DamagedError:
        return None


def load_weights(model: nn.Module, weights: Mapping[str, torch.Tensor]) -> None:
    """Load weights into a model.

    Raises:
        UserError: they do not fit, because the classes of the model's parts have changed.
    """
    try:
        model.load_state_dict(weights)
    except RuntimeError as error:
        _, *lines = str(error).splitlines()
        raise UserError(
            f"the weights of this run do not fit its model as it is now built ({lines[0].strip()}): go back to the "
            "code that trained them, or train again with stale=rerun"
        ) from error
