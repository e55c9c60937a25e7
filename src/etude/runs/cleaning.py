"""Find and delete files of runs that are no longer needed: never a result, and nothing of an unfinished run.

The exceptions are unfinished runs that `stale=rerun` has put aside, and runs that failed before their first step.
"""

import shutil
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from etude.errors import UserError
from etude.files import write_text
from etude.runs.lock import claim, is_locked
from etude.runs.run_dir import RunDir
from etude.runs.run_state import State, state_of_unfinished


class Kind(StrEnum):
    """Why files may be deleted."""

    CHECKPOINTS = "checkpoints of finished runs (evaluate needs them)"
    HALF_WRITTEN = "files that killed processes had half written"
    PUT_ASIDE = "unfinished runs that stale=rerun has put aside"
    FAILED = "runs that failed before their first step"


_WHOLE = (Kind.PUT_ASIDE, Kind.FAILED)  # the run goes with its directory


@dataclass(frozen=True)
class Removable:
    """Files or folders of one run that may be deleted, and their size in bytes."""

    run: RunDir
    kind: Kind
    paths: tuple[Path, ...]
    size: int


def find_removable(folder: Path) -> Iterator[Removable]:
    """Yield what may be deleted from the runs of one study, including those put aside; `folder` holds its arms."""
    for path in sorted([*folder.glob("*/seed*/"), *folder.glob("*/.stale/seed*/")]):
        run = RunDir(path)
        if not (run.id and run.config_file.is_file()) or is_locked(run):
            continue
        if _has_result(run):
            checkpoints = run.checkpoint.parent
            inside = [] if checkpoints.is_symlink() else sorted({*checkpoints.glob("*")} - {run.cleaned_file})
            half = [file for file in run.path.rglob(".*.part") if file.parent != checkpoints]
            yield from _removable(run, Kind.CHECKPOINTS, inside)
            yield from _removable(run, Kind.HALF_WRITTEN, half)
        elif path.parent.name == ".stale" and not run.finished:
            yield from _removable(run, Kind.PUT_ASIDE, [path])
        elif _failed_at_once(run):
            yield from _removable(run, Kind.FAILED, [path])


def remove(one: Removable) -> int:
    """Delete the files and return the bytes that this frees: 0 if a process has started to work on the run."""
    lock = claim(one.run)
    if lock is None:
        return 0
    try:
        if one.run.finished == (one.kind in _WHOLE) or (one.kind is Kind.FAILED and not _failed_at_once(one.run)):
            return 0
        locks = {one.run.claim_file, one.run.lock_file}
        for path in [*one.run.path.iterdir()] if one.kind in _WHOLE else one.paths:
            if path not in locks:
                shutil.rmtree(path) if path.is_dir() and not path.is_symlink() else path.unlink(missing_ok=True)
        if one.kind is Kind.CHECKPOINTS:
            write_text(one.run.cleaned_file, "etude clean has deleted the checkpoints that lay here.\n")
    finally:
        lock.close()
    if one.kind in _WHOLE and locks.issuperset(one.run.path.iterdir()):  # else it was launched again meanwhile
        for path in locks:
            path.unlink(missing_ok=True)
        with suppress(OSError):
            one.run.path.rmdir()  # not before, because NFS keeps open locks in the folder under another name
    return one.size


def _failed_at_once(run: RunDir) -> bool:
    """Return whether a run ended with an error before it had logged a step or written a checkpoint."""
    begun = run.finished or run.metrics_file.exists() or any(run.checkpoint.parent.glob("*"))
    return not begun and state_of_unfinished(run, held=False)[0] is State.FAILED


def _removable(run: RunDir, kind: Kind, paths: Sequence[Path]) -> Iterator[Removable]:
    if paths:
        files = (file for path in paths for file in ([path] if path.is_file() else path.rglob("*")))
        yield Removable(run, kind, tuple(paths), sum(_own_size(file) for file in files if not file.is_dir()))


def _own_size(file: Path) -> int:
    """Return the size of a file in bytes, divided by the number of runs that share it as a hard link."""
    status = file.lstat()
    return status.st_size // status.st_nlink


def _has_result(run: RunDir) -> bool:
    """Return whether the result can be read; if it is truncated, the checkpoint is still needed to evaluate again."""
    try:
        return run.finished and bool(run.result())
    except (UserError, OSError):
        return False
