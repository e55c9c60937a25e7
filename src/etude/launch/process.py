"""The process of a run: the command, how it is started, and how it ended."""

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from etude.store.run_dir import RunDir
from etude.study.study import value_at

Command = Callable[[RunDir], Sequence[str]]


def train_command(run_dir: RunDir) -> list[str]:
    """Return the command that trains and evaluates a frozen run: one process, or torchrun with one per device."""
    devices = value_at(run_dir.config(), "trainer.devices") or 1
    torchrun = ["-m", "torch.distributed.run", "--standalone", f"--nproc-per-node={devices}"] if devices > 1 else []
    return [sys.executable, *torchrun, "-m", "etude.training.run", str(run_dir.path)]


def start_supervised(
    command: Sequence[str], *, log: Path, environment: Mapping[str, str], grace: float
) -> subprocess.Popen[bytes]:
    """Start a command under `supervisor.py`, appending its output to a log.

    `grace` is the time in seconds between asking the command to stop and killing it. The command has no input, and its
    own session, so that Ctrl-C reaches the sweep only, which then decides what to stop.

    Raises:
        OSError: the log cannot be written, or no process can be started.
    """
    supervisor = [sys.executable, "-I", "-S", str(Path(__file__).with_name("supervisor.py"))]
    with log.open("ab") as file:
        return subprocess.Popen(
            [*supervisor, str(os.getpid()), str(grace), *command],
            stdin=subprocess.DEVNULL,
            stdout=file,
            stderr=subprocess.STDOUT,
            env=environment,
            start_new_session=True,
        )


def describe_exit(code: int) -> str:
    """Describe how a process without a result has ended; a negative code is minus the number of a signal."""
    if code >= 0:
        return f"exit status {code}, without a result"
    hint = " (the machine may be out of memory)" if code == -signal.SIGKILL else ""
    name = next((known.name for known in signal.Signals if known == -code), f"signal {-code}")  # some have no name
    return f"killed by {name}{hint}"
