"""Saving what training needs to go on: after each validation and at the end, whole or not at all."""

from pathlib import Path
from typing import Any

import torch
from lightning import Callback, LightningModule, Trainer
from lightning.pytorch.plugins import TorchCheckpointIO

from etude.errors import UserError
from etude.files import replacing


class DirectIO(TorchCheckpointIO):
    """Writes a checkpoint straight to its file; Lightning's own way holds it in memory once more, or twice."""

    def save_checkpoint(self, checkpoint: dict[str, Any], path: Any, storage_options: Any = None) -> None:
        """Save to a local path, which the caller moves to its place when it is whole."""
        with Path(path).open("wb") as file:  # Python's file says what is wrong with a disk, PyTorch's own does not
            try:
                torch.save(checkpoint, file)
            except RuntimeError as error:  # the archive could not be closed, which hides what came before it
                raise error.__context__ if isinstance(error.__context__, OSError) else error from None


class Checkpoints(Callback):
    """Keeps one file, the newest."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._saved = -1

    def on_validation_end(self, trainer: Trainer, module: LightningModule) -> None:
        """Save after the validation, so that its row is behind us."""
        self._save(trainer)

    def on_train_end(self, trainer: Trainer, module: LightningModule) -> None:
        """Save the last step, which validation may have missed."""
        if trainer.global_step != self._saved:
            self._save(trainer)

    def _save(self, trainer: Trainer) -> None:
        with replacing(self.path) as temporary:
            trainer.save_checkpoint(temporary)
        self._saved = trainer.global_step


def read_checkpoint(path: Path) -> dict[str, Any]:
    """A checkpoint on the processor; nothing in it is executed.

    Raises:
        UserError: there is none, or it is not whole.
    """
    if not path.is_file():
        raise UserError(f"there is no checkpoint at {path}: train the run first, or name the directory of another")
    try:
        checkpoint: dict[str, Any] = torch.load(path, map_location="cpu", weights_only=True)
    except Exception as error:  # whatever a torn or foreign file makes torch raise
        raise UserError(f"{path} is not a whole checkpoint of étude: delete it and train again") from error
    if not isinstance(checkpoint, dict) or "state_dict" not in checkpoint:
        raise UserError(f"{path} is not a checkpoint of étude: it holds no weights under 'state_dict'")
    return checkpoint


def model_weights(checkpoint: dict[str, Any]) -> dict[str, torch.Tensor]:
    """The weights of the bare model in a checkpoint of the training module."""
    prefix = "model."
    state = checkpoint["state_dict"]
    return {key.removeprefix(prefix): value for key, value in state.items() if key.startswith(prefix)}
