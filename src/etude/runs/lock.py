"""One process at a time works on a run; its lock dies with it."""

from collections.abc import Iterator
from contextlib import contextmanager

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


def is_locked(run: RunDir) -> bool:
    """Whether a process works on the run."""
    if not run.lock_file.exists():  # taking it would make it
        return False
    try:
        with FileLock(run.lock_file, timeout=0):
            return False
    except Timeout:
        return True
