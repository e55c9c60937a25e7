"""The end of a run's log, where it says why it died."""

import os
import re
from pathlib import Path

_TAIL = 16384  # bytes: room for a long traceback, and torchrun's story behind it
_LINES = 15
_ERROR = re.compile(r"etude: |[A-Za-z_][\w.]*(Error|Exception)(:|$)")  # how a process says why it ends
_NO_ERROR = re.compile(
    r"\d\d:\d\d:\d\d |KeyboardInterrupt\b|etude: stopped;"
)  # it went on after that; or was asked to stop
# How torchrun begins to tell of a process that died. Forty lines follow, and none of them says why.
_TORCHRUN = re.compile(r"E\d{4} .*torch/distributed/elastic/.*failed \(exitcode: (-?\d+)\)")


def last_lines(log: Path, start: int = 0) -> tuple[list[str], int | None]:
    """Read what a process printed last.

    Args:
        log: the file, which may hold an earlier process's words too.
        start: where this process's begin, in bytes.

    Returns:
        A few lines, without the empty ones; and the exit status of the process in which a run on several devices
        failed (minus the number of the signal, where one killed it), or None.
    """
    lines = _tail(log, start)
    for place, line in enumerate(lines):
        if failed := _TORCHRUN.match(line):
            return lines[: place + 1][-_LINES:], int(failed[1])
    return lines[-_LINES:], None


def last_error(log: Path) -> str | None:
    """Find the line with which a run died; None where it was asked to stop, was killed, or went on after it."""
    for line in reversed(_tail(log)):
        if _NO_ERROR.match(line):
            return None
        if _ERROR.match(line) and "another process is training" not in line:  # it spoke for itself, not for the run
            return line
    return None


def _tail(log: Path, start: int = 0) -> list[str]:
    """The last lines from byte `start` on, of a progress bar what it showed last, without the empty ones."""
    try:
        with log.open("rb") as file:
            end = file.seek(0, os.SEEK_END)
            file.seek(max(start, end - _TAIL))
            text = file.read().decode("utf-8", errors="replace")
    except OSError:
        return []
    lines = (line.rsplit("\r", 1)[-1].rstrip() for line in text.replace("\r\n", "\n").split("\n"))
    return [line for line in lines if line]
