"""Saving what training needs to go on: whole or not at all, and the one before it until the run is finished."""

from pathlib import Path
from typing import Any

import torch
from lightning import LightningModule, Trainer
from lightning.pytorch.callbacks import Checkpoint
from lightning.pytorch.plugins import TorchCheckpointIO

from etude.files import replacing
from etude.runs.run_dir import RunDir
from etude.trained.checkpoint import previous
from etude.training.processes import all_gather_floats


class DirectIO(TorchCheckpointIO):
    """Writes each checkpoint whole or not at all, straight to a file; Lightning's own way holds it in memory once more.

    Of the newest the one before it is kept, in case a dying machine tears the newest.

    Args:
        run: whose checkpoints these are.
    """

    def __init__(self, run: RunDir) -> None:
        super().__init__()
        self.run = run

    def save_checkpoint(self, checkpoint: dict[str, Any], path: Any, storage_options: Any = None) -> None:
        """Save to a local path.

        Raises:
            UserError: it cannot be written.
        """
        checkpoint["run"], checkpoint["training"] = self.run.id, self.run.training
        with replacing(Path(path)) as temporary:
            with temporary.open("wb") as file:  # Python's file says what is wrong with a disk, PyTorch's own does not
                try:
                    torch.save(checkpoint, file)
                except RuntimeError as error:  # the archive could not be closed, which hides what came before it
                    raise error.__context__ if isinstance(error.__context__, OSError) else error from None
            if Path(path) == self.run.checkpoint and self.run.checkpoint.exists():
                self.run.checkpoint.replace(previous(self.run.checkpoint))


class Checkpoints(Checkpoint):
    """Saves the newest checkpoint. Lightning calls it behind every other callback, whose state it holds.

    Args:
        path: where.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._saved = -1

    def on_validation_end(self, trainer: Trainer, module: LightningModule) -> None:
        """Save after the validation, its row behind us; what ends the training in one process ends it in all."""
        trainer.should_stop = any(all_gather_floats(float(trainer.should_stop), module.device))
        self.save(trainer)

    def on_train_end(self, trainer: Trainer, module: LightningModule) -> None:
        """Save the last step, which validation may have missed."""
        self.save(trainer)

    def save(self, trainer: Trainer) -> None:
        """Save the step that was just completed, unless that has been done."""
        if trainer.global_step != self._saved:
            self._saved = trainer.global_step
            trainer.save_checkpoint(self.path)


def count_batches(checkpoint: dict[str, Any], batches: int) -> None:
    """Make Lightning's loop go on after so many batches, all of them completed.

    It counts micro batches, of which a step may have more or fewer now than when it was saved, and it has not yet
    counted the last one where a checkpoint is saved at the end of a batch.
    """
    progress = checkpoint["loops"]["fit_loop"]["epoch_loop.batch_progress"]
    for counts in (progress["total"], progress["current"]):
        counts.update(dict.fromkeys(counts, batches))
