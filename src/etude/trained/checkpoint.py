"""Read checkpoints of training, without executing anything in them.

A checkpoint is a zip archive with a checksum of every file in it, and contains the name of its training. Both are
checked whenever one is read.
"""

import hashlib
import logging
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch

from etude.errors import UserError
from etude.files import is_whole_archive

log = logging.getLogger(__name__)


class DamagedError(UserError):
    """A checkpoint is missing, incomplete or damaged."""


def previous(path: Path) -> Path:
    """Return the path of the previous checkpoint, given the `path` of the newest."""
    return path.with_name("previous.ckpt")


def newest_checkpoint(path: Path) -> tuple[int, bool, Path | None]:
    """Find the checkpoint to resume from: the one at `path`, or if that is damaged, the previous one.

    Returns:
        Its step, whether a callback has ended the training there, and its file; (0, False, None) if none is intact.

    Raises:
        UserError: it belongs to another training, or is not a checkpoint of étude.
    """
    for file in filter(Path.exists, (path, previous(path))):
        try:
            checkpoint = read_checkpoint(file)
        except DamagedError:
            log.warning("%s is incomplete or damaged, and left aside", file)
        else:
            return checkpoint["global_step"], checkpoint.get("ended", False), file
    return 0, False, None


def read_checkpoint(path: Path) -> dict[str, Any]:
    """Load a checkpoint onto the CPU, without executing anything in it.

    Raises:
        DamagedError: it is missing, incomplete or damaged.
        UserError: it belongs to another training than the one in whose directory it is.
    """
    way_out = "delete it, or where the training is complete its directory, and train again"
    not_whole = f"{path} is not a whole checkpoint of étude: {way_out}"
    if not path.is_file():
        raise DamagedError(f"there is no checkpoint at {path}: train the run first, or name the directory of another")
    if not is_whole_archive(path):
        raise DamagedError(not_whole)
    try:
        checkpoint: dict[str, Any] = torch.load(path, map_location="cpu", weights_only=True)
    except Exception as error:  # torch may raise anything when it loads a foreign file
        # PyTorch's reader is stricter about the end of an archive than Python's.
        damaged = isinstance(error, FileNotFoundError) or "failed reading zip archive" in str(error)
        raise (DamagedError if damaged else UserError)(not_whole) from error
    if not isinstance(checkpoint, dict) or "state_dict" not in checkpoint:
        raise UserError(f"{path} is not a checkpoint of étude: it holds no weights under 'state_dict'")
    own, named = re.match(r"[0-9a-f]{10}\b", path.resolve().parents[1].name), checkpoint.get("training")
    if own and named and own[0] != named:
        raise UserError(f"{path} is of another training, {named}: put its own in its place, or {way_out}")
    return checkpoint


def model_weights(checkpoint: dict[str, Any]) -> dict[str, torch.Tensor]:
    """Return the weights of the model from a checkpoint of the training module."""
    prefix = "model."
    state = checkpoint["state_dict"]
    return {key.removeprefix(prefix): value for key, value in state.items() if key.startswith(prefix)}


def hash_weights(weights: Mapping[str, torch.Tensor]) -> str:
    """Return the SHA-256 of the names and bytes of weights."""
    hashed = hashlib.sha256()
    for name, value in sorted(weights.items()):
        hashed.update(name.encode())
        hashed.update(value.contiguous().flatten().view(torch.uint8).numpy().data)
    return hashed.hexdigest()
