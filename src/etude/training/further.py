"""Train a training further: begin a longer one where a shorter one of the same config has come to.

The shorter one keeps its directory; what it has come to is copied. The longer one ends with the bits of one that was
trained so long at once, and is refused the short cut where it would not.
"""

import logging
import shutil
from collections.abc import Callable, Mapping
from math import nan
from pathlib import Path
from typing import Any, NamedTuple

import torch

from etude.files import read_json, replacing
from etude.store.lock import is_held
from etude.store.provenance import Code, code_of
from etude.store.training_dir import TrainingDir
from etude.trained.checkpoint import newest_checkpoint, previous, read_checkpoint
from etude.training.schedule import learning_rate

Identity = Mapping[str, Any]

log = logging.getLogger(__name__)


class _Shorter(NamedTuple):
    """What a training of fewer steps has come to."""

    step: int
    training: TrainingDir
    checkpoint: Path


def begin_where_a_shorter_one_ended(training: TrainingDir) -> None:
    """Copy checkpoints and curves of the longest training that differs in `budget.max_steps` alone, which is smaller.

    The schedule decides whether that may be: the learning rates of all steps until there, and of the next one, must be
    those of the longer training. Where they are not, or where other code trained the shorter one, it is said why. So it
    is of one that is being trained now, whose files would change while they are copied.

    Args:
        training: is left as it is if it has a checkpoint.
    """
    own = read_json(training.identity_file)
    if not own or training.checkpoint.exists() or previous(training.checkpoint).exists():
        return
    found = []
    for other in _of_fewer_steps(training, own):
        if is_held(other.lock_file):
            log.info("%s is being trained now, and is not trained further", other.path)
        elif state := _state_of(other):
            found.append(state)
    for step, shorter, checkpoint in sorted(found, key=lambda one: one.step, reverse=True):
        if why := _why_not(own, shorter, step):
            log.info("%s has come to step %d, and is not trained further: %s", shorter.path, step, why)
            continue
        _copy(shorter, checkpoint, training)
        log.info("training %s further, from its step %d on", shorter.path, step)
        return


def _of_fewer_steps(training: TrainingDir, own: Identity) -> list[TrainingDir]:
    """Return the trainings of the same config with fewer steps; the values of the schedule may follow from them."""
    files = sorted(training.path.parent.glob(f"*/{training.identity_file.name}"))
    found = {file.parent: identity for file in files if (identity := read_json(file))}
    return [
        TrainingDir(path)
        for path, identity in found.items()
        if _without_end(identity) == _without_end(own) and _max_steps(identity) < _max_steps(own)
    ]


def _without_end(identity: Identity) -> dict[str, Any]:
    budget = {key: value for key, value in identity["budget"].items() if key != "max_steps"}
    return {**identity, "budget": budget, "schedule": identity["schedule"] | {"max_steps": None}}


def _max_steps(identity: Identity) -> int:
    return int(identity["budget"]["max_steps"])


def _state_of(training: TrainingDir) -> _Shorter | None:
    if (training.trained or {}).get("diverged"):
        return None
    step, _, checkpoint = newest_checkpoint(training.checkpoint)
    return _Shorter(step, training, checkpoint) if checkpoint else None


def _why_not(own: Identity, shorter: TrainingDir, step: int) -> str:
    """Return why a training cannot go on from this step of a shorter one; empty if it can."""
    if code_of(read_json(shorter.environment_file) or {}) is not Code.SAME:
        return "other code than today's trained it"
    theirs = read_json(shorter.identity_file) or {}
    if theirs["schedule"] == own["schedule"]:
        return ""
    if own["schedule"].get("_partial_"):
        return "the state of a scheduler of PyTorch's is made for its number of steps"
    before, after = (_or_nan(learning_rate(one)) for one in (theirs, own))
    differs = next((at for at in range(1, step + 2) if before(at) != after(at)), None)
    if differs is None:
        return ""
    return (
        f"its schedule looks at the end, and gave step {differs} the rate {before(differs):.3g}, of {_max_steps(own)} "
        f"steps {after(differs):.3g}; schedule=constant and inverse_sqrt do not, nor does noam with budget.cooldown=0"
    )


def _or_nan(rate: Callable[[int], float]) -> Callable[[int], float]:
    """Make a rate NaN, which equals none, where it fails: the checkpoint holds the one behind the last update."""

    def of_step(step: int) -> float:
        try:
            return rate(step)
        except Exception:  # it may be anybody's
            return nan

    return of_step


def _copy(shorter: TrainingDir, newest: Path, training: TrainingDir) -> None:
    """Copy checkpoints, curves and environment, the newest checkpoint last, from which the training goes on."""
    for file in (shorter.metrics_file, shorter.environment_file, shorter.init_from_file):
        if file.is_file():
            with replacing(training.path / file.name) as temporary:
                shutil.copyfile(file, temporary)
    kept = [file for file in newest.parent.glob("*.ckpt") if file.name not in ("last.ckpt", "previous.ckpt")]
    for file, name in [*((file, file.name) for file in kept), (newest, training.checkpoint.name)]:
        checkpoint = read_checkpoint(file)
        checkpoint["training"] = training.path.name
        with replacing(training.checkpoint.with_name(name)) as temporary:
            torch.save(checkpoint, temporary)
