"""Record metrics during training: a row every few steps, and one after each validation."""

import time
from typing import Any

from lightning import Callback, Trainer

from etude.data.batching import Batch
from etude.training.metrics_writers import Row, Sink
from etude.training.module import TrainingModule
from etude.training.processes import all_gather_floats


class Records(Callback):
    """Makes rows of metrics and passes them to the sinks.

    Args:
        sinks: where rows go. Every process makes rows; ranks other than 0 at most check them for divergence.
        every: steps between two rows.
        max_steps: steps of the whole run, to estimate the remaining time.
    """

    def __init__(self, sinks: list[Sink], *, every: int, max_steps: int) -> None:
        self.sinks, self.every, self.max_steps = sinks, every, max_steps
        self.seconds = 0.0  # of training so far, validation included
        self._tokens = 0  # since the last row
        self._mark = self._window = self._validation = 0.0
        self._window_steps = self._window_tokens = 0  # since the last row or the start of this process

    def state_dict(self) -> dict[str, Any]:
        """Return the training time, and the tokens since the last row, for a checkpoint."""
        return {"seconds": self._tick(), "tokens": self._tokens}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restore them from a checkpoint."""
        self.seconds, self._tokens = state["seconds"], state["tokens"]

    def on_train_start(self, trainer: Trainer, module: TrainingModule) -> None:  # type: ignore[override]
        """Start the clock."""
        self._mark = self._window = time.perf_counter()

    def on_train_batch_end(  # type: ignore[override]
        self, trainer: Trainer, module: TrainingModule, outputs: Any, batch: Batch, batch_idx: int
    ) -> None:
        """Count tokens and steps; every `every` steps write a row."""
        if not module.step_completed_by(batch):
            return
        self._tokens += batch.step_tokens
        self._window_tokens += batch.step_tokens
        self._window_steps += 1
        if trainer.global_step % self.every == 0:
            nll = sum(all_gather_floats(module.nll_sum, module.device))  # waits for the device, so read the clock after
            seconds = time.perf_counter() - self._window
            self._send(
                self._row(module)
                | {
                    "loss": nll / self._tokens,
                    "learning_rate": module.learning_rate,
                    "tokens_per_second": self._window_tokens / seconds,
                    "seconds_left": (self.max_steps - trainer.global_step) * seconds / self._window_steps,
                }
            )
            module.nll_sum, self._tokens = 0.0, 0
            self._window, self._window_steps, self._window_tokens = time.perf_counter(), 0, 0

    def on_validation_start(self, trainer: Trainer, module: TrainingModule) -> None:  # type: ignore[override]
        """Start to time the validation, which does not count in tokens per second."""
        self._validation = time.perf_counter()

    def on_validation_end(self, trainer: Trainer, module: TrainingModule) -> None:  # type: ignore[override]
        """Write a row for the validation."""
        found = {"loss": module.validation_loss, "perplexity": module.validation_perplexity} | module.validation_scores
        self._send(self._row(module) | {f"valid_{name}": value for name, value in found.items()})
        self._window += time.perf_counter() - self._validation

    def on_train_end(self, trainer: Trainer, module: TrainingModule) -> None:  # type: ignore[override]
        """Stop the clock."""
        self._tick()

    def _tick(self) -> float:
        now = time.perf_counter()
        self.seconds, self._mark = self.seconds + now - self._mark, now
        return self.seconds

    def _row(self, module: TrainingModule) -> Row:
        return {"step": module.global_step, "tokens": module.tokens, "seconds": round(self._tick(), 3)}

    def _send(self, row: Row) -> None:
        for sink in self.sinks:
            sink.write(row)
