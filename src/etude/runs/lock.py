"""One process at a time works on a run, and one launcher starts it; their locks die with them.

`flock` holds them, on this machine and on all that share a file system which passes it on (docs/clusters.md).
"""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from filelock import FileLock, Timeout

from etude.errors import UserError
from etude.runs.run_dir import RunDir


class Busy(UserError):  # noqa: N818
    """Another process works on the run; it is no failure, and the same command may be given again later."""

    exit_status = 75  # EX_TEMPFAIL in sysexits.h: try again later


@contextmanager
def hold_lock(run: RunDir, patience: float) -> Iterator[None]:
    """Meanwhile no other process works on the run.

    Args:
        run: a directory.
        patience: seconds to wait for another process.

    Raises:
        Busy: another process has it.
    """
    try:
        with FileLock(run.lock_file, timeout=patience):
            yield
    except Timeout as error:
        raise Busy(f"another process is training {run.path}: wait for it, or stop it first") from error


def claim(run: RunDir) -> FileLock | None:
    """Keep other launchers from the run until the lock is released; None where somebody has it already."""
    lock = FileLock(run.claim_file, timeout=0, thread_local=False)
    try:
        lock.acquire()
    except Timeout:
        return None
    if _held(run.lock_file):
        lock.release()
        return None
    return lock


def is_locked(run: RunDir) -> bool:
    """Whether a process works on the run, or a launcher is starting one."""
    return _held(run.lock_file) or _held(run.claim_file)


def _held(file: Path) -> bool:
    if not file.exists():  # taking it would make it
        return False
    try:
        with FileLock(file, timeout=0):
            return False
    except Timeout:
        return True
