"""The end of a run's log, where it says why it died."""

import os
import re
from pathlib import Path

_TAIL = 16384  # bytes: room for a long traceback, and torchrun's story behind it
_LINES = 15
# How torchrun begins to tell of a process that died. Forty lines follow, and none of them says why.
_TORCHRUN = re.compile(r"E\d{4} .*torch/distributed/elastic/.*failed \(exitcode: (-?\d+)\)")


def last_lines(log: Path, start: int = 0) -> tuple[list[str], int | None]:
    """What a process printed last.

    Args:
        log: the file, which may hold an earlier process's words too.
        start: where this process's begin, in bytes.

    Returns:
        A few lines, without the empty ones; and the exit status of the process in which a run on several devices
        failed (minus the number of the signal, where one killed it), or None.
    """
    try:
        with log.open("rb") as file:
            end = file.seek(0, os.SEEK_END)
            file.seek(max(start, end - _TAIL))
            text = file.read().decode("utf-8", errors="replace")
    except OSError:
        return [], None
    lines = [line.rsplit("\r", 1)[-1].rstrip() for line in text.replace("\r\n", "\n").split("\n")]
    lines = [line for line in lines if line]
    for place, line in enumerate(lines):
        if failed := _TORCHRUN.match(line):
            return lines[: place + 1][-_LINES:], int(failed[1])
    return lines[-_LINES:], None
