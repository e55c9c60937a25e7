"""Keep the checkpoints that are averaged at the end of a run (section 6.1)."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from lightning import Callback, Trainer

from etude.data.batching import Batch
from etude.training.module import TrainingModule


class KeepWeights(Callback):
    """Saves the weights of certain steps, each file atomically.

    Args:
        files: step -> file.
    """

    def __init__(self, files: Mapping[int, Path]) -> None:
        self.files = files

    def on_train_batch_end(  # type: ignore[override]
        self, trainer: Trainer, module: TrainingModule, outputs: Any, batch: Batch, batch_idx: int
    ) -> None:
        """Save the weights, before validation at the same step saves the checkpoint that a killed run resumes from."""
        if module.step_completed_by(batch) and trainer.global_step in self.files:
            trainer.save_checkpoint(self.files[trainer.global_step], weights_only=True)
