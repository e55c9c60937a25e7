"""Stop a run on a signal: save a checkpoint at the current step, then end without success.

During training, Ctrl-C, SIGTERM (a scheduler needs the machine), SIGUSR1 or SIGHUP (the terminal was closed) make the
run stop after the current step. A second Ctrl-C ends it at once. Before and after training a signal ends the process at
once; everything it had finished is on disk.
"""

import logging
import signal
import time
from types import FrameType
from typing import Any

from lightning import Trainer
from lightning.pytorch.callbacks import Checkpoint

from etude.data.batching import Batch
from etude.errors import UserError
from etude.tasks.claims import BrokenClaim, check_readable
from etude.training.checkpoints import Checkpoints
from etude.training.module import TrainingModule
from etude.training.processes import Poll

log = logging.getLogger(__name__)

_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGUSR1, signal.SIGHUP)
_SECOND_CTRL_C = 1.0  # seconds after which a further SIGINT is a second Ctrl-C, not the first one delivered twice


class Stopped(Exception):  # noqa: N818
    """A run was stopped by a signal; it can be resumed from a checkpoint."""


def end_on_sigterm() -> None:
    """Make SIGTERM raise KeyboardInterrupt as Ctrl-C does, so that the process cleans up before it ends."""
    signal.signal(signal.SIGTERM, signal.default_int_handler)


class StopWhenAsked(Checkpoint):
    """Catches signals; after the step saves a checkpoint and raises `Stopped`, in every process at the same step.

    A run of one process stops after the current step, one of several within about a second. It is a `Checkpoint`
    callback so that Lightning calls it after the others.

    Args:
        checkpoints: saves the checkpoint.
        val_every: steps between validations. A validation that is due is done first, as its row belongs to the step.
    """

    def __init__(self, checkpoints: Checkpoints, *, val_every: int) -> None:
        self.checkpoints, self.val_every = checkpoints, val_every
        self._poll = Poll()
        self._requested_at = 0.0  # on the monotonic clock; 0 without a signal
        self._previous_handlers: dict[signal.Signals, signal.Handlers] = {}

    def on_train_start(self, trainer: Trainer, module: TrainingModule) -> None:  # type: ignore[override]
        """Replace Lightning's signal handlers."""
        # Signals that are ignored stay so: under nohup, in a script's background, or in the processes of a sweep.
        handled = [number for number in _SIGNALS if signal.getsignal(number) != signal.SIG_IGN]
        self._previous_handlers = {number: signal.signal(number, self._on_signal) for number in handled}  # type: ignore[misc]

    def on_train_batch_end(  # type: ignore[override]
        self, trainer: Trainer, module: TrainingModule, outputs: object, batch: Batch, batch_idx: int
    ) -> None:
        """Stop after a complete step, unless a validation is due."""
        if module.step_completed_by(batch) and trainer.global_step % self.val_every:
            self._stop_if(self._poll(bool(self._requested_at), module.device), trainer)

    def on_save_checkpoint(self, trainer: Trainer, module: TrainingModule, checkpoint: dict[str, Any]) -> None:  # type: ignore[override]
        """Stop before a checkpoint is written that could not be read, from which no run goes on or ends.

        Raises:
            UserError: a callback put something into it that is not plain.
        """
        try:
            check_readable(checkpoint.get("callbacks"), "callbacks")
        except BrokenClaim as broken:
            raise UserError(f"the state of {broken}") from broken

    def on_validation_end(self, trainer: Trainer, module: TrainingModule) -> None:  # type: ignore[override]
        """Stop after a validation."""
        self._stop_if(self._poll.now(bool(self._requested_at), module.device), trainer)

    def on_train_end(self, trainer: Trainer, module: TrainingModule) -> None:  # type: ignore[override]
        """Restore the signal handlers, and stop instead of going on to the evaluation if a signal has come."""
        self._restore()
        self._stop_if(self._poll.now(bool(self._requested_at), module.device), trainer)

    def on_exception(self, trainer: Trainer, module: TrainingModule, exception: BaseException) -> None:  # type: ignore[override]
        """Restore the signal handlers."""
        self._restore()

    def _on_signal(self, number: int, frame: FrameType | None) -> None:
        now = time.monotonic()
        if number == signal.SIGINT and self._requested_at and now - self._requested_at > _SECOND_CTRL_C:
            raise KeyboardInterrupt
        if not self._requested_at:
            self._requested_at = now
            log.warning("%s: stopping after this step", signal.Signals(number).name)

    def _stop_if(self, requested: bool, trainer: Trainer) -> None:
        if requested:
            self.checkpoints.save(trainer)
            raise Stopped

    def _restore(self) -> None:
        for number, handler in self._previous_handlers.items():
            signal.signal(number, handler)
        self._previous_handlers = {}
