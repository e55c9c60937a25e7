"""Reading what training saved; nothing in it is executed.

A checkpoint is a zip archive, which has a checksum of every file in it, and says which run it is of. Both are looked at
whenever one is read.
"""

import logging
import shlex
from pathlib import Path
from typing import Any

import torch

from etude.errors import UserError
from etude.files import is_whole_archive
from etude.runs.run_dir import RunDir

log = logging.getLogger(__name__)


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
