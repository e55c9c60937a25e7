"""Keeping the checkpoints whose mean a run ends with (section 6.1)."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from lightning import Callback, Trainer

from etude.data.batching import Batch
from etude.training.module import TrainingModule


class KeepWeights(Callback):
    """Saves the weights of certain steps, each whole or not at all.

    Args:
        files: step -> where.
    """

    def __init__(self, files: Mapping[int, Path]) -> None:
        self.files = files

    def on_train_batch_end(  # type: ignore[override]
        self, trainer: Trainer, module: TrainingModule, outputs: Any, batch: Batch, batch_idx: int
    ) -> None:
        """Save, before a validation of the same step saves the checkpoint from which a killed run goes on."""
        if module.step_completed_by(batch) and trainer.global_step in self.files:
            trainer.save_checkpoint(self.files[trainer.global_step], weights_only=True)
