"""One process at a time works on a run or trains what several share, and one launcher starts it.

The locks die with their processes. `flock` holds them, on this machine and on all that share a file system which passes
it on (docs/clusters.md). Those of a training that runs share lie in `runs/.trainings`.
"""

import errno
import logging
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from filelock import FileLock, Timeout

from etude.errors import UserError
from etude.runs.run_dir import RunDir
from etude.runs.siblings import is_trained

log = logging.getLogger(__name__)


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


@contextmanager
def hold_training(run: RunDir, patience: float) -> Iterator[None]:
    """Meanwhile no other run trains the same; whoever has to do with a complete training alone waits for nobody.

    Args:
        run: a directory.
        patience: seconds to wait for another run; below zero as long as it takes.

    Raises:
        Busy: another run trains the same.
    """
    file = _of_training(run, "lock")
    if file is None or is_trained(run):
        yield
        return
    file.parent.mkdir(exist_ok=True)
    if _is_held(file):
        log.info("another run is trained whose weights are the same: waiting for it")
    try:
        with FileLock(file, timeout=patience):
            yield
    except Timeout as error:
        raise Busy(f"another process is training for another run what {run.path} needs too: wait for it") from error


def claim(run: RunDir) -> ExitStack | None:
    """Keep other launchers from the run and its training until the stack is closed; None where somebody is at it."""
    with ExitStack() as claimed:
        files = [run.claim_file]
        if (shared := _of_training(run, "claim")) and not is_trained(run):
            shared.parent.mkdir(exist_ok=True)
            files.append(shared)
        for file in files:
            try:
                claimed.enter_context(FileLock(file, timeout=0, thread_local=False))
            except Timeout:
                return None
        if _is_held(run.lock_file) or (shared in files and _is_held(_of_training(run, "lock"))):
            return None
        return claimed.pop_all()


def is_locked(run: RunDir) -> bool:
    """Whether a process works on the run, or a launcher is starting one."""
    return _is_held(run.lock_file) or _is_held(run.claim_file)


def is_training_locked(run: RunDir) -> bool:
    """Whether a process trains for this run or another what it needs, or a launcher is starting one."""
    held = _is_held(_of_training(run, "lock")) or _is_held(_of_training(run, "claim"))
    return held and not is_trained(run)


def _of_training(run: RunDir, kind: str) -> Path | None:
    """The file to hold while the run's training is incomplete; None where nobody has recorded which that is."""
    training = run.training
    return run.runs_dir / ".trainings" / f"{training}.{kind}" if training else None


def _is_held(file: Path | None) -> bool:
    if file is None or not file.exists():  # taking it would make it
        return False
    try:
        with FileLock(file, timeout=0):
            return False
    except Timeout:
        return True
    except OSError as error:
        if error.errno in (errno.EROFS, errno.EACCES):  # of a disk that is only read, or another's: nobody here has it
            return False
        raise
