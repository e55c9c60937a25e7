"""Stop a run on a signal, or where its search wants it: save a checkpoint at the current step, then end.

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
from etude.store.run_dir import RunDir
from etude.store.run_state import State, Stop, read_stop
from etude.tasks.claims import BrokenClaim, check_readable
from etude.training.checkpoints import Checkpoints
from etude.training.module import TrainingModule
from etude.training.processes import Poll

log = logging.getLogger(__name__)

_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGUSR1, signal.SIGHUP)
_LOOK_AFTER = 1.0  # seconds between two looks for `stop.json`
_SECOND_CTRL_C = 1.0  # seconds after which a further SIGINT is a second Ctrl-C, not the first one delivered twice


class Stopped(Exception):  # noqa: N818
    """A run was stopped; it can be resumed from a checkpoint.

    Attributes:
        by_search: the state that its search has given it; None if a signal stopped it.
        step: the steps that it has done.
    """

    def __init__(self, step: int, by_search: State | None = None) -> None:
        super().__init__(step, by_search)
        self.step, self.by_search = step, by_search


def end_on_sigterm() -> None:
    """Make SIGTERM raise KeyboardInterrupt as Ctrl-C does, so that the process cleans up before it ends."""
    signal.signal(signal.SIGTERM, signal.default_int_handler)


class StopWhenAsked(Checkpoint):
    """Catches signals and looks for `stop.json`; after the step saves a checkpoint and raises `Stopped`.

    It does so in every process at the same step.

    A run of one process stops after the current step, one of several within about a second. It is a `Checkpoint`
    callback so that Lightning calls it after the others.

    Args:
        run: the run.
        checkpoints: saves the checkpoint.
        val_every: steps between validations. A validation that is due is done first, as its row belongs to the step.
    """

    def __init__(self, run: RunDir, checkpoints: Checkpoints, *, val_every: int) -> None:
        self.run, self.checkpoints, self.val_every = run, checkpoints, val_every
        self._poll = Poll()
        self._looked_at = 0.0  # for `stop.json`, on the monotonic clock
        self._stop: Stop | None = None  # what it said then
        self._requested_at = 0.0  # on the monotonic clock; 0 without a signal
        self._previous_handlers: dict[signal.Signals, signal.Handlers] = {}

    def on_train_start(self, trainer: Trainer, module: TrainingModule) -> None:  # type: ignore[override]
        """Replace Lightning's signal handlers; a run that is already where it is to stop does no further step."""
        # Signals that are ignored stay so: under nohup, in a script's background, or in the processes of a sweep.
        handled = [number for number in _SIGNALS if signal.getsignal(number) != signal.SIG_IGN]
        self._previous_handlers = {number: signal.signal(number, self._on_signal) for number in handled}  # type: ignore[misc]
        if self._poll.now(self._wanted(trainer, look=True), module.device):
            raise self._stopped(trainer)  # the checkpoint that it would go on from is there

    def on_train_batch_end(  # type: ignore[override]
        self, trainer: Trainer, module: TrainingModule, outputs: object, batch: Batch, batch_idx: int
    ) -> None:
        """Stop after a complete step, unless a validation is due."""
        if module.step_completed_by(batch) and trainer.global_step % self.val_every:
            self._stop_if(self._poll(self._wanted(trainer), module.device), trainer)

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
        self._stop_if(self._poll.now(self._wanted(trainer, look=True), module.device), trainer)

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

    def _wanted(self, trainer: Trainer, *, look: bool = False) -> bool:
        """Return whether a signal has come, or `stop.json` names this step; it is read now and then, or to `look`."""
        if not self._requested_at and (look or time.monotonic() >= self._looked_at + _LOOK_AFTER):
            self._looked_at = time.monotonic()
            self._stop = read_stop(self.run)
        return bool(self._requested_at) or (self._stop is not None and self._stop.step <= trainer.global_step)

    def _stop_if(self, wanted: bool, trainer: Trainer) -> None:
        if wanted:
            self.checkpoints.save(trainer)
            raise self._stopped(trainer)

    def _stopped(self, trainer: Trainer) -> Stopped:
        stop = None if self._requested_at else self._stop or read_stop(self.run)  # the latter: another process looked
        return Stopped(trainer.global_step, stop and stop.state)

    def _restore(self) -> None:
        for number, handler in self._previous_handlers.items():
            signal.signal(number, handler)
        self._previous_handlers = {}
