"""File locks: only one process at a time works on a run or on a shared training, and only one launcher starts it.

They work on one machine, and across machines whose shared file system supports `flock` (docs/clusters.md). Locks of
trainings, which runs may share, are in `runs/.trainings`.
"""

import logging
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from filelock import Timeout

from etude.errors import UserError
from etude.runs.file_lock import hold, is_held
from etude.runs.run_dir import RunDir
from etude.runs.siblings import is_trained

log = logging.getLogger(__name__)


class Busy(UserError):  # noqa: N818
    """Another process is working on the run. This is not a failure: the same command can be repeated later."""

    exit_status = 75  # EX_TEMPFAIL in sysexits.h: try again later


@contextmanager
def hold_lock(run: RunDir, patience: float) -> Iterator[None]:
    """Hold the lock of a run within the context, so that no other process works on it.

    Args:
        run: the directory of the run.
        patience: seconds to wait for another process.

    Raises:
        Busy: another process still holds the lock after that time.
    """
    try:
        with hold(run.lock_file, patience):
            yield
    except Timeout as error:
        raise Busy(f"another process is training {run.path}: wait for it, or stop it first") from error


@contextmanager
def hold_training(run: RunDir, patience: float) -> Iterator[None]:
    """Hold the lock of a run's training within the context, so that no run that shares it trains at the same time.

    No lock is taken if the training is complete or not recorded.

    Args:
        run: the directory of the run.
        patience: seconds to wait for another run; a negative number waits as long as necessary.

    Raises:
        Busy: another run still holds the lock after that time.
    """
    file = _training_file(run, "lock")
    if file is None or is_trained(run):
        yield
        return
    file.parent.mkdir(exist_ok=True)
    if _is_held(file):
        log.info("another run is trained whose weights are the same: waiting for it")
    try:
        with hold(file, patience):
            yield
    except Timeout as error:
        raise Busy(f"another process is training for another run what {run.path} needs too: wait for it") from error


def claim(run: RunDir) -> ExitStack | None:
    """Claim a run and its training for this launcher; closing the returned stack releases them.

    Returns None if another process or launcher holds either of them.
    """
    with ExitStack() as claimed:
        files = [run.claim_file]
        if (shared := _training_file(run, "claim")) and not is_trained(run):
            shared.parent.mkdir(exist_ok=True)
            files.append(shared)
        for file in files:
            try:
                claimed.enter_context(hold(file, 0))
            except Timeout:
                return None
        if _is_held(run.lock_file) or (shared in files and _is_held(_training_file(run, "lock"))):
            return None
        return claimed.pop_all()


def is_locked(run: RunDir) -> bool:
    """Return whether a process works on the run, or a launcher is starting one."""
    return _is_held(run.lock_file) or _is_held(run.claim_file)


def is_training_locked(run: RunDir) -> bool:
    """Return whether the run's training is incomplete and a process works on it, or a launcher is starting one.

    The process may belong to another run that shares the training.
    """
    held = _is_held(_training_file(run, "lock")) or _is_held(_training_file(run, "claim"))
    return held and not is_trained(run)


def _training_file(run: RunDir, kind: str) -> Path | None:
    """Return the lock or claim file of the run's training; None if the run has no recorded training."""
    training = run.training
    return run.runs_dir / ".trainings" / f"{training}.{kind}" if training else None


def _is_held(file: Path | None) -> bool:
    return file is not None and is_held(file)
