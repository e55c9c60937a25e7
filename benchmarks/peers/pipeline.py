"""What the harness adds to a training step: étude's trainer, rows and progress included, and a bare PyTorch loop.

Both train the same model on the same batches with the same optimizer. The bare loop has what training needs and nothing
else: batch, forward, loss, backward, update, next learning rate.
"""

import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from etude.config.compose import compose
from etude.config.freeze import freeze
from etude.logs import quiet_libraries
from etude.processor.allocator import keep_large_blocks
from etude.processor.matmul import choose_matmul
from etude.tasks import build
from etude.training.build import training_data, training_module
from etude.training.metrics_writers import ProgressFile
from etude.training.module import TrainingModule
from etude.training.randomness import reseed
from etude.training.trainer import fit


class Pipeline:
    """A round is so many steps from the beginning, its rate steps a second.

    Args:
        steps: of a round.
        overrides: of the config, Hydra's.
    """

    def __init__(self, steps: int, overrides: Sequence[str] = ()) -> None:
        keep_large_blocks()
        quiet_libraries()
        self.folder, self.steps = tempfile.TemporaryDirectory(), steps
        # No validation falls into the steps, and the checkpoint of the last one is written after the clock has stopped.
        setting = [f"budget.max_steps={steps}", f"budget.val_every={10 * steps}", "logger=none", "trainer=cpu"]
        self.run = freeze(compose([*overrides, *setting, f"runs_dir={Path(self.folder.name)}"]))
        self.config = self.run.config()
        self.store = build.token_store(self.config)

    def module(self) -> TrainingModule:
        model = build.model(self.config, self.store.vocab_size)
        choose_matmul(self.config["trainer"]["matmul"], model)
        return training_module(self.config, model)


class Bare(Pipeline):
    """The loop."""

    def round(self) -> float:
        module = self.module().train()
        batches = iter(training_data(self.config, self.store, start_step=0).train_dataloader())
        made = module.configure_optimizers()
        optimizer, schedule = made["optimizer"], made["lr_scheduler"]["scheduler"]
        next(batches)  # with which an epoch is planned
        started = time.perf_counter()
        for step in range(self.steps):
            batch = next(batches)
            reseed(self.config["seed"], step, 0)
            optimizer.zero_grad()
            loss = module.loss(module(batch), batch.target_out) / batch.target_tokens
            loss.backward()
            optimizer.step()
            schedule.step()
        return self.steps / (time.perf_counter() - started)


class Whole(Pipeline):
    """The trainer."""

    def round(self) -> float:
        progress, training = ProgressFile(self.run.progress_file, self.steps), self.run.own_training
        training.path.mkdir(parents=True, exist_ok=True)
        seconds, *_ = fit(
            self.run, training, self.config, self.module(), self.store, [], progress, {}, [], (0, False, None)
        )
        training.checkpoint.unlink()
        return self.steps / seconds
