"""Save the checkpoint that training resumes from, atomically; the one before it is kept until training is complete."""

from pathlib import Path
from typing import Any

import torch
from lightning import LightningModule, Trainer
from lightning.pytorch.callbacks import Checkpoint
from lightning.pytorch.plugins import TorchCheckpointIO

from etude.files import replacing
from etude.store.training_dir import TrainingDir
from etude.trained.checkpoint import previous
from etude.training.lightning_internals import set_updates
from etude.training.processes import all_gather_floats


class DirectIO(TorchCheckpointIO):
    """Writes each checkpoint atomically and straight to a file; Lightning would hold a second copy in memory.

    The checkpoint before the newest is kept, in case the machine dies while it writes the newest.

    Args:
        training: the training that the checkpoints belong to.
    """

    def __init__(self, training: TrainingDir) -> None:
        super().__init__()
        self.training = training

    def save_checkpoint(self, checkpoint: dict[str, Any], path: Any, storage_options: Any = None) -> None:
        """Save to a local path.

        Raises:
            UserError: it cannot be written.
        """
        checkpoint["training"] = self.training.path.name
        with replacing(Path(path)) as temporary:
            with temporary.open("wb") as file:  # Python's file reports what is wrong with a disk, PyTorch's does not
                try:
                    torch.save(checkpoint, file)
                except RuntimeError as error:  # the archive could not be closed, which hides the first error
                    raise error.__context__ if isinstance(error.__context__, OSError) else error from None
            newest = self.training.checkpoint
            if Path(path) == newest and newest.exists():
                newest.replace(previous(newest))


class Checkpoints(Checkpoint):
    """Saves the newest checkpoint. Lightning calls it after all other callbacks, whose state it includes.

    Args:
        path: the file.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._saved = -1

    def on_validation_end(self, trainer: Trainer, module: LightningModule) -> None:
        """Save after validation, whose row is written by then; if one process ends the training, all do."""
        trainer.should_stop = any(all_gather_floats(float(trainer.should_stop), module.device))
        self.save(trainer)

    def on_train_end(self, trainer: Trainer, module: LightningModule) -> None:
        """Save the last step, which may not have been a validation step."""
        self.save(trainer)

    def save(self, trainer: Trainer) -> None:
        """Save the step that was just completed, unless it is saved already."""
        if trainer.global_step != self._saved:
            self._saved = trainer.global_step
            trainer.save_checkpoint(self.path)


def count_batches(checkpoint: dict[str, Any], batches: int, *, val_every: float) -> None:
    """Make Lightning's loop resume after `batches` completed batches.

    Lightning counts micro batches. A step may have another number of them now than when it was saved, and a checkpoint
    that is saved at the end of a batch does not count that batch yet. Callbacks log at the number of updates, which
    lacks that of the batch, too: where a validation follows it, Lightning goes through the end of the batch once more,
    without the validation, and counts it there.

    Args:
        checkpoint: is changed.
        batches: micro batches that were completed.
        val_every: micro batches from one validation to the next.
    """
    loop = checkpoint["loops"]["fit_loop"]
    progress = loop["epoch_loop.batch_progress"]
    for counts in (progress["total"], progress["current"]):
        counts.update(dict.fromkeys(counts, batches))
    set_updates(loop, checkpoint["global_step"] - (batches % val_every == 0))
