"""Trains runs that a SIGKILL, or the signal it names, meets at a certain moment.

Reads lines `MOMENT<tab>RUN_DIR<tab>FILE` from standard input, trains each run in a fork of itself, which spares the
imports, and answers with the exit status as `subprocess` tells it; what the run says goes to the file.
"""

import os
import signal
import sys
from pathlib import Path
from typing import BinaryIO

import torch

import etude.training.run
from etude.data import store
from etude.runs.run_dir import RunDir
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


def die(moment: str, run_dir: str, said: str) -> None:
    with Path(said).open("w") as file:
        for stream in (1, 2):
            os.dup2(file.fileno(), stream)
    MOMENTS[moment]()
    sys.argv = ["etude.training.run", run_dir]
    etude.training.run.main()


if __name__ == "__main__":
    torch.set_num_threads(1)
    signal.signal(signal.SIGHUP, signal.SIG_DFL)  # tests behind nohup would hand it down as ignored
    for line in sys.stdin:
        child = os.fork()
        if child == 0:
            die(*line.rstrip("\n").split("\t"))
            os._exit(0)
        print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
