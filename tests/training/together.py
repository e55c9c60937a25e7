"""Callbacks for runs of several processes, which import them by this file's name."""

import json
import shutil
from collections import Counter
from pathlib import Path
from typing import Any

from lightning import Callback, LightningModule, Trainer
from torch.profiler import ProfilerActivity, profile

from etude.training.stopping import StopWhenAsked


class StopsInOne(Callback):
    """Ends the training after the second validation, in the second process alone."""

    def on_validation_end(self, trainer: Trainer, pl_module: LightningModule) -> None:
        if trainer.global_rank == 1 and trainer.global_step >= 6:
            trainer.should_stop = True


class KeepsHalf(Callback):
    """Keeps the checkpoint of the second step as `half.ckpt` beside it."""

    def __init__(self, dirpath: Path) -> None:
        self.folder = Path(dirpath)

    def on_train_batch_start(self, trainer: Trainer, *told: Any) -> None:
        if trainer.is_global_zero and trainer.global_step == 2:
            shutil.copyfile(self.folder / "last.ckpt", self.folder.parent / "half.ckpt")


class CountsCollectives(Callback):
    """Writes down what the first process says to the others in steps 101 to 149, after which all stop."""

    def __init__(self, dirpath: Path) -> None:
        self.file = Path(dirpath).parent / "collectives.json"
        self.profile: Any = None

    def on_train_start(self, trainer: Trainer, *told: Any) -> None:
        """Let no second of a busy machine count: only twice as many steps are between two polls as before the last."""
        for callback in trainer.callbacks:
            if isinstance(callback, StopWhenAsked):
                callback._poll.seconds = 1e6

    def on_train_batch_end(self, trainer: Trainer, *told: Any) -> None:
        if trainer.is_global_zero and trainer.global_step == 100:
            self.profile = profile(activities=[ProfilerActivity.CPU])
            self.profile.start()
        if trainer.is_global_zero and trainer.global_step == 149:
            self.profile.stop()
            named = (event.name for event in self.profile.events())
            self.file.write_text(json.dumps(Counter(name for name in named if name.startswith("c10d::"))))
        trainer.should_stop = trainer.global_step == 150
