"""`dying.py MOMENT RUN_DIR` trains a run that a SIGKILL, or the signal it names, meets at that moment.

So does `dying.py MOMENT train WORDS`, as `etude train WORDS`.
"""

import os
import signal
import sys
from typing import BinaryIO

import torch

import etude.cli.main
import etude.training.run
from etude.data import store
from etude.store.run_dir import RunDir
from etude.training.metrics_callback import Records
from etude.training.metrics_writers import MetricsFile
from etude.training.module import TrainingModule


def meet(number: signal.Signals = signal.SIGKILL) -> None:
    os.kill(os.getpid(), number)


def at_call(
    owner: object, name: str, call: int, *, before: bool = True, number: signal.Signals = signal.SIGKILL
) -> None:
    """Send the signal before or after the `call`-th call of a function."""
    original, calls = getattr(owner, name), [0]

    def counted(*args: object, **kwargs: object) -> object:
        calls[0] += 1
        if before and calls[0] == call:
            meet(number)
        value = original(*args, **kwargs)
        if not before and calls[0] == call:
            meet(number)
        return value

    setattr(owner, name, counted)


def half_a_checkpoint(call: int) -> None:
    calls = [0]
    original = torch.save

    def torn(checkpoint: dict, file: BinaryIO) -> None:
        calls[0] += 1
        original(checkpoint, file)
        if calls[0] == call:
            file.truncate(file.tell() // 2)
            meet()

    torch.save = torn


MOMENTS = {
    "before the first step": lambda: at_call(TrainingModule, "training_step", 1),
    "in the middle of an epoch": lambda: at_call(TrainingModule, "training_step", 6),
    "between a step and its records": lambda: at_call(Records, "on_train_batch_end", 8),
    "in the middle of a validation": lambda: at_call(TrainingModule, "validation_step", 3),
    "in the middle of a row": lambda: at_call(MetricsFile, "write", 5, before=False),
    "in the middle of a checkpoint": lambda: half_a_checkpoint(2),
    "between the old checkpoint and the new": lambda: at_call(os, "fsync", 12, before=False),
    "in the middle of preparing": lambda: at_call(store, "write_split", 2, before=False),
    "while the weights are judged": lambda: at_call(etude.training.run, "evaluate", 1),
    "before the result is written": lambda: at_call(RunDir, "write_result", 1),
    "SIGTERM in a step": lambda: at_call(TrainingModule, "training_step", 5, number=signal.SIGTERM),
    "SIGINT in a step": lambda: at_call(TrainingModule, "training_step", 8, number=signal.SIGINT),
    "SIGHUP in a step": lambda: at_call(TrainingModule, "training_step", 4, number=signal.SIGHUP),
    "SIGTERM in the step before a validation": lambda: at_call(
        TrainingModule, "training_step", 6, number=signal.SIGTERM
    ),
    "SIGTERM in a validation": lambda: at_call(TrainingModule, "validation_step", 2, number=signal.SIGTERM),
    "SIGTERM in the last step": lambda: at_call(TrainingModule, "training_step", 10, number=signal.SIGTERM),
    "SIGTERM while translating": lambda: at_call(etude.training.run, "evaluate", 1, number=signal.SIGTERM),
}


if __name__ == "__main__":
    signal.signal(signal.SIGHUP, signal.SIG_DFL)  # tests behind nohup would hand it down as ignored
    _, moment, *sys.argv[1:] = sys.argv
    MOMENTS[moment]()
    (etude.cli.main if sys.argv[1] == "train" else etude.training.run).main()
