"""Lock a file with `flock`: the system releases the lock when its process ends, even if that is killed."""

import errno
import fcntl
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from filelock import FileLock

from etude.errors import UserError

_UNSUPPORTED = (errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP)


@contextmanager
def hold(file: Path, patience: float) -> Iterator[None]:
    """Hold the lock of a file within the context.

    Args:
        file: it is created if it does not exist.
        patience: seconds to wait for another process; a negative number waits as long as necessary.

    Raises:
        filelock.Timeout: another process still holds the lock after that time.
        UserError: the file system has no locks.
    """
    # `is_held` takes the lock for a moment, which must not look as if it were held.
    lock = FileLock(file, timeout=patience if patience < 0 else max(patience, 0.1), thread_local=False)
    is_held(file)  # where there is no flock, filelock would take files for locks, which killed processes leave behind
    with _explained(file):
        lock.acquire()
    try:
        if file.exists() and not is_held(file):
            raise _no_locks(file)
        yield
    finally:
        lock.release()


def is_held(file: Path) -> bool:
    """Return whether a process holds the lock of the file, which may be of another user's.

    Raises:
        UserError: the file system has no locks.
    """
    try:
        opened = file.open("rb")
    except (FileNotFoundError, NotADirectoryError, PermissionError):  # nobody has ever locked it, or nobody here may
        return False
    with opened, _explained(file):
        try:
            fcntl.flock(opened, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except (BlockingIOError, PermissionError):  # some file systems answer the one, some the other
            return True
    return False


@contextmanager
def _explained(file: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        if error.errno not in _UNSUPPORTED:
            raise
        raise _no_locks(file) from error


def _no_locks(file: Path) -> UserError:
    return UserError(
        f"{file.parent}: this file system has no locks, by which processes leave each other's runs alone; "
        "choose another place, or mount it with them (docs/clusters.md)"
    )
