"""Read the end of a run's log, which says why the run failed."""

import os
import re
from pathlib import Path

_TAIL = 16384  # bytes: enough for a long traceback and torchrun's report after it
_LINES = 15
_ERROR = re.compile(r"etude: |[A-Za-z_][\w.]*(Error|Exception)(:|$)")  # the last line of a process that fails
_WENT_ON = re.compile(r"\d\d:\d\d:\d\d ")  # a log line with a time: the process went on
# It was asked to stop; torchrun, which starts the processes of a run on several devices, ends with an error then.
_STOPPED = re.compile(r"KeyboardInterrupt\b|etude: stopped(;|$)|torch\.distributed\.\S*\.SignalException\b")
# The first line of torchrun's report on a failed process. The forty lines after it do not give the reason.
_TORCHRUN = re.compile(r"E\d{4} .*torch/distributed/elastic/.*(failed \(exitcode: (-?\d+)\).*)")


def last_lines(log: Path, start: int = 0) -> tuple[list[str], int | None]:
    """Read the last lines that a process printed.

    Args:
        log: the log file, which may also hold the output of earlier processes.
        start: the offset in bytes at which the output of this process begins.

    Returns:
        Up to 15 non-empty lines; and for a run on several devices, the exit status of the process that failed (minus
        the signal number if a signal killed it), else None.
    """
    lines = _tail(log, start)
    for place, line in enumerate(lines):
        if failed := _TORCHRUN.match(line):
            return lines[: place + 1][-_LINES:], int(failed[2])
    return lines[-_LINES:], None


def last_error(log: Path) -> str | None:
    """Return the error line that ended a run; None if it was asked to stop, was killed, or went on afterwards.

    If a process of several failed without one, it is what torchrun says of it.
    """
    failed = None  # of several processes: torchrun stops the others, whose last lines say so
    for line in reversed(_tail(log)):
        if report := _TORCHRUN.match(line):
            failed = report[1]
        elif _WENT_ON.match(line) or (_STOPPED.match(line) and not failed):
            break
        elif "another process is training" in line:  # not an error of the run
            failed = None
        elif "ChildFailedError" in line:
            continue
        elif _ERROR.match(line) and not _STOPPED.match(line):
            return line
    return failed


def _tail(log: Path, start: int = 0) -> list[str]:
    """Return the last non-empty lines from byte `start` on; for a progress bar, only its last state."""
    try:
        with log.open("rb") as file:
            end = file.seek(0, os.SEEK_END)
            file.seek(max(start, end - _TAIL))
            text = file.read().decode("utf-8", errors="replace")
    except OSError:
        return []
    lines = (line.rsplit("\r", 1)[-1].rstrip() for line in text.replace("\r\n", "\n").split("\n"))
    return [line for line in lines if line]
