"""Stopping when asked: a checkpoint at the very step, then an end that is no success.

While it trains, a run takes Ctrl-C, SIGTERM (a scheduler that wants its machine back), SIGUSR1 or SIGHUP (the terminal
is gone) as a request and ends after the step it is at. A second Ctrl-C means at once. At any other time a signal ends
the process at once; what it had finished is on disk.
"""

import logging
import signal
import time
from types import FrameType

from lightning import Trainer
from lightning.pytorch.callbacks import Checkpoint

from etude.data.batching import Batch
from etude.training.checkpoints import Checkpoints
from etude.training.module import TrainingModule
from etude.training.processes import Poll

log = logging.getLogger(__name__)

_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGUSR1, signal.SIGHUP)
_IMPATIENCE = 1.0  # seconds after which a second Ctrl-C is another one, not the first that came by two ways


class Stopped(Exception):  # noqa: N818
    """A run ended because it was asked to; it goes on from a checkpoint."""


def end_on_sigterm() -> None:
    """Let SIGTERM end the process as Ctrl-C does: what was begun is put away first."""
    signal.signal(signal.SIGTERM, signal.default_int_handler)


class StopWhenAsked(Checkpoint):
    """Notes signals, and soon saves a checkpoint and raises `Stopped`, in every process alike, behind other callbacks.

    A run of one process stops after the step under way, one of several within about a second.

    Args:
        checkpoints: what saves it.
        val_every: steps between validations: one that is due comes first, for its row belongs to the step.
    """

    def __init__(self, checkpoints: Checkpoints, *, val_every: int) -> None:
        self.checkpoints, self.val_every = checkpoints, val_every
        self._poll = Poll()
        self._asked = 0.0  # when, on the monotonic clock; 0 if nobody has
        self._before: dict[signal.Signals, signal.Handlers] = {}

    def on_train_start(self, trainer: Trainer, module: TrainingModule) -> None:  # type: ignore[override]
        """From here on signals are noted, not Lightning's to handle."""
        # behind nohup, or in the background of a script, some are ignored, as a sweep leaves them
        heeded = [number for number in _SIGNALS if signal.getsignal(number) != signal.SIG_IGN]
        self._before = {number: signal.signal(number, self._note) for number in heeded}  # type: ignore[misc]

    def on_train_batch_end(  # type: ignore[override]
        self, trainer: Trainer, module: TrainingModule, outputs: object, batch: Batch, batch_idx: int
    ) -> None:
        """Stop after a complete step."""
        if module.step_completed_by(batch) and trainer.global_step % self.val_every:
            self._stop_if(self._poll(bool(self._asked), module.device), trainer)

    def on_validation_end(self, trainer: Trainer, module: TrainingModule) -> None:  # type: ignore[override]
        """Stop after a validation."""
        self._stop_if(self._poll.now(bool(self._asked), module.device), trainer)

    def on_train_end(self, trainer: Trainer, module: TrainingModule) -> None:  # type: ignore[override]
        """Training is over, and saved; whoever asked did not ask for what comes after it."""
        self._restore()
        self._stop_if(self._poll.now(bool(self._asked), module.device), trainer)

    def on_exception(self, trainer: Trainer, module: TrainingModule, exception: BaseException) -> None:  # type: ignore[override]
        """Training is over."""
        self._restore()

    def _note(self, number: int, frame: FrameType | None) -> None:
        now = time.monotonic()
        if number == signal.SIGINT and self._asked and now - self._asked > _IMPATIENCE:
            raise KeyboardInterrupt
        if not self._asked:
            self._asked = now
            log.warning("%s: stopping after this step", signal.Signals(number).name)

    def _stop_if(self, asked: bool, trainer: Trainer) -> None:
        if asked:
            self.checkpoints.save(trainer)
            raise Stopped

    def _restore(self) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)
        self._before = {}
