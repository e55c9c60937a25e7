"""The directory of one training, which all runs share that differ only in how they are scored, in whatever study.

runs/.trainings/<T>/
    identity.json      what decides the weights; T is its digest
    checkpoints/       last.ckpt; step-*.ckpt where they are averaged; previous.ckpt until the training is complete
    metrics.csv        one row per logged step
    tokenizer.model    the subword model
    environment.json   versions, git state, hardware
    init_from.json     which weights it began with, and which not, where it began with those of another run
    trained.json       written last: its presence means that the training is complete

Beside it lies `<T>.lock`, held by the process that trains. Trainings that `stale=rerun` put aside are in `.stale`.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from etude.files import read_json

FOLDER = ".trainings"  # below the folder of runs; hidden, so that it is taken for no study


class NamedFile:
    """Descriptor: the path of a file in the directory of a run or a training."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __get__(self, place: Any, owner: type[Any]) -> Path:
        path: Path = place.path / self.name
        return path


@dataclass(frozen=True)
class TrainingDir:
    """The directory of one training: paths of its files."""

    path: Path

    identity_file = NamedFile("identity.json")
    checkpoint = NamedFile("checkpoints/last.ckpt")
    metrics_file = NamedFile("metrics.csv")
    tokenizer_file = NamedFile("tokenizer.model")
    environment_file = NamedFile("environment.json")
    init_from_file = NamedFile("init_from.json")
    trained_file = NamedFile("trained.json")

    @property
    def lock_file(self) -> Path:
        """Held by the process that trains."""
        return self.path.with_name(f"{self.path.name}.lock")

    @property
    def busy(self) -> str:
        """The message if another process holds the lock."""
        return f"another process is training {self.path} for another run: wait for it, or stop it first"

    @property
    def begun(self) -> bool:
        """Whether a step was logged or a checkpoint written."""
        return self.metrics_file.exists() or any(self.checkpoint.parent.glob("*"))

    @property
    def trained(self) -> dict[str, Any] | None:
        """What `trained.json` says; None if the training is not complete, or its checkpoints were deleted since.

        Keys: step, tokens, seconds, diverged (how, or None), weights (the SHA-256 of the last checkpoint's, or None),
        results_version, own_files, libraries.
        """
        found: dict[str, Any] | None = read_json(self.trained_file)
        return found if found and (found["diverged"] or self.checkpoint.is_file()) else None
