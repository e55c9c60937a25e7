"""Saving what training needs to go on: whole or not at all, and the one before it until the run is finished.

A checkpoint is a zip archive, which has a checksum of every file in it, and says which run it is of. Both are looked at
whenever one is read.
"""

import logging
import shlex
from pathlib import Path
from typing import Any

import torch
from lightning import LightningModule, Trainer
from lightning.pytorch.callbacks import Checkpoint
from lightning.pytorch.plugins import TorchCheckpointIO

from etude.errors import UserError
from etude.files import is_whole_archive, replacing
from etude.runs.run_dir import RunDir
from etude.training.processes import all_gather_floats

log = logging.getLogger(__name__)


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


def previous(path: Path) -> Path:
    """The checkpoint before the newest, which lies at `path`."""
    return path.with_name("previous.ckpt")


def newest_checkpoint(path: Path) -> tuple[int, bool, Path | None]:
    """The checkpoint to go on from: that at `path`, or if it is damaged, the one before it.

    Returns:
        Its step, whether a callback has ended the training there, and its file; (0, False, None) where none is whole.

    Raises:
        UserError: it is another run's, or no checkpoint of étude.
    """
    for file in (path, previous(path)):
        if is_whole_archive(file):
            checkpoint = read_checkpoint(file)
            return checkpoint["global_step"], checkpoint.get("ended", False), file
        if file.exists():
            log.warning("%s is torn or damaged, and left aside", file)
    return 0, False, None


def count_batches(checkpoint: dict[str, Any], batches: int) -> None:
    """Make Lightning's loop go on after so many batches, all of them completed.

    It counts micro batches, of which a step may have more or fewer now than when it was saved, and it has not yet
    counted the last one where a checkpoint is saved at the end of a batch.
    """
    progress = checkpoint["loops"]["fit_loop"]["epoch_loop.batch_progress"]
    for counts in (progress["total"], progress["current"]):
        counts.update(dict.fromkeys(counts, batches))


def read_checkpoint(path: Path) -> dict[str, Any]:
    """A checkpoint on the processor; nothing in it is executed.

    Raises:
        UserError: there is none, it is not whole, or it is of another training than the run in whose directory it is.
    """
    run = RunDir.at(str(path))
    if not path.is_file() and run.cleaned_file.is_file():
        typed = shlex.join(word for word in run.overrides() if not word.startswith("runs_dir="))
        again = " ".join(filter(None, ["etude train", typed, "runs_dir=again"]))
        raise UserError(f"the checkpoint of {run.path} was cleaned: `{again}` trains it once more")
    if not path.is_file():
        raise UserError(f"there is no checkpoint at {path}: train the run first, or name the directory of another")
    way_out = "delete it, or where the run is finished its directory, and train again"
    not_whole = UserError(f"{path} is not a whole checkpoint of étude: {way_out}")
    if not is_whole_archive(path):
        raise not_whole
    try:
        checkpoint: dict[str, Any] = torch.load(path, map_location="cpu", weights_only=True)
    except Exception as error:  # whatever a foreign file makes torch raise
        raise not_whole from error
    if not isinstance(checkpoint, dict) or "state_dict" not in checkpoint:
        raise UserError(f"{path} is not a checkpoint of étude: it holds no weights under 'state_dict'")
    own, named = run.id, checkpoint.get("run")  # before étude wrote it down there was no name in it
    shared = run.training and run.training == checkpoint.get("training")
    if own and named and own != named and not shared:
        raise UserError(f"{path} is of another run, {named}: put its own in its place, or {way_out}")
    return checkpoint


def model_weights(checkpoint: dict[str, Any]) -> dict[str, torch.Tensor]:
    """The weights of the bare model in a checkpoint of the training module."""
    prefix = "model."
    state = checkpoint["state_dict"]
    return {key.removeprefix(prefix): value for key, value in state.items() if key.startswith(prefix)}
