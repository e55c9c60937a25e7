"""The process of one run, under a supervisor that lets nothing outlive it."""

import os
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

_SUPERVISOR = Path(__file__).with_name("supervisor.py")
_PATIENCE = 5.0  # seconds for the kernel to take away what was killed


class Worker:
    """A command whose output goes to the end of a log.

    It has no input and sessions of its own: Ctrl-C reaches the sweep, and the sweep decides.

    Args:
        command: program and arguments.
        log: a file.
        environment: of the command.
        grace: seconds between asking it to stop and killing it.

    Raises:
        OSError: the log cannot be written, or there is no room for another process.
    """

    def __init__(self, command: Sequence[str], *, log: Path, environment: Mapping[str, str], grace: float) -> None:
        supervisor = [sys.executable, "-I", "-S", str(_SUPERVISOR), str(os.getpid()), str(grace)]
        with log.open("ab") as file:
            self.log_start = file.tell()
            self._supervisor = subprocess.Popen(
                [*supervisor, *command],
                stdin=subprocess.DEVNULL,
                stdout=file,
                stderr=subprocess.STDOUT,
                env=environment,
                start_new_session=True,
            )

    def poll(self) -> int | None:
        """The exit status, or minus the number of the signal that killed it; None while anything of it is alive."""
        return self._supervisor.poll()

    def signal(self, number: signal.Signals) -> None:
        """What the supervisor heeds: SIGTERM to let the command put itself away, SIGUSR1 to end all of it now."""
        self._supervisor.send_signal(number)

    def wait(self) -> None:
        """Until it has ended after SIGUSR1; one that not even the kernel can end is left to it."""
        try:
            self._supervisor.wait(_PATIENCE)
        except subprocess.TimeoutExpired:
            self._supervisor.kill()
