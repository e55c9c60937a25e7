"""Lock the directory of a run or of a training, so that only one process at a time works on it.

The process that works holds the lock, first of the run and then of its training; nobody waits for one. It is a `flock`
on a file, which the system releases when the process ends, even if that is killed. It works on one machine, and across
machines whose shared file system supports `flock` (docs/clusters.md).
"""

import errno
import fcntl
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from etude.errors import UserError

_UNSUPPORTED = (errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP)
_MOMENT = 0.3  # seconds for those to let go who only look whether a lock is held


class Busy(UserError):  # noqa: N818
    """Another process holds a lock. This is not a failure: the same command can be repeated later."""

    exit_status = 75  # EX_TEMPFAIL in sysexits.h: try again later


@contextmanager
def hold(file: Path, busy: str) -> Iterator[None]:
    """Hold the lock of a file within the context.

    Args:
        file: it is created if it does not exist.
        busy: the message if another process holds the lock.

    Raises:
        Busy: another process holds the lock.
        UserError: the file system has no locks.
    """
    with file.open("ab") as opened:
        deadline = time.monotonic() + _MOMENT
        while not _acquires(opened.fileno(), fcntl.LOCK_EX, file):
            if time.monotonic() > deadline:
                raise Busy(busy)
            time.sleep(0.01)
        if not (file.exists() and os.path.samestat(file.stat(), os.fstat(opened.fileno()))):
            raise Busy(f"{file.parent} was moved or deleted meanwhile")
        if not is_held(file):
            raise _no_locks(file)
        yield


def is_held(file: Path) -> bool:
    """Return whether a process holds the lock of the file, which may be of another user's.

    Raises:
        UserError: the file system has no locks.
    """
    try:
        opened = file.open("rb")
    except (FileNotFoundError, NotADirectoryError, PermissionError):  # nobody has ever locked it, or nobody here may
        return False
    with opened:
        return not _acquires(opened.fileno(), fcntl.LOCK_SH, file)


def _acquires(opened: int, kind: int, file: Path) -> bool:
    try:
        fcntl.flock(opened, kind | fcntl.LOCK_NB)
    except (BlockingIOError, PermissionError):  # some file systems answer the one, some the other
        return False
    except OSError as error:
        if error.errno not in _UNSUPPORTED:
            raise
        raise _no_locks(file) from error
    return True


def _no_locks(file: Path) -> UserError:
    return UserError(
        f"{file.parent}: this file system has no locks, by which processes leave each other's runs alone; "
        "choose another place, or mount it with them (docs/clusters.md)"
    )
