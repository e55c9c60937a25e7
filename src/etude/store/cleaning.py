"""Find and delete what is no longer needed of runs and trainings: never a result, and nothing of an unfinished run.

The exceptions are unfinished runs that `stale=rerun` has put aside, and runs that failed before their first step.
"""

import os
import shutil
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from etude.errors import UserError
from etude.store.lock import Busy, hold, is_held
from etude.store.run_dir import RunDir, runs_by_training
from etude.store.run_state import State, read_stop, state_of_unfinished
from etude.store.training_dir import FOLDER, TrainingDir


class Kind(StrEnum):
    """Why files may be deleted."""

    CHECKPOINTS = "checkpoints of finished runs (evaluate needs them)"
    HALF_WRITTEN = "files that killed processes had half written"
    PUT_ASIDE = "unfinished runs that stale=rerun has put aside"
    FAILED = "runs that failed before their first step"
    UNNAMED = "trainings that no run names"


_WHOLE = (Kind.PUT_ASIDE, Kind.FAILED, Kind.UNNAMED)  # the folder goes, too


@dataclass(frozen=True)
class Removable:
    """Files or folders of one run or training that may be deleted.

    Attributes:
        place: the run or the training.
        kind: why they may be deleted.
        paths: the files or folders.
        size: in bytes.
        runs: the run itself, or the runs that name the training.
    """

    place: RunDir | TrainingDir
    kind: Kind
    paths: tuple[Path, ...]
    size: int
    runs: tuple[RunDir, ...]

    @property
    def studies(self) -> list[str]:
        """The studies whose runs it belongs to, in the order of the alphabet; that of no run is called "-"."""
        return sorted({run.path.relative_to(run.runs_dir).parts[0] for run in self.runs}) or ["-"]


def find_removable(runs_dir: Path) -> Iterator[Removable]:
    """Yield what may be deleted from all runs in a folder of runs, those put aside included, and their trainings."""
    going, runs_dir = set[RunDir](), Path(os.path.normpath(runs_dir))  # as each run names it
    for path in sorted([*runs_dir.glob("*/*/seed*/"), *runs_dir.glob("*/*/.stale/seed*/")]):
        run = RunDir(path)
        if not (run.id and run.config_file.is_file()) or is_held(run.lock_file):
            continue
        kind, paths = Kind.HALF_WRITTEN, [*run.path.rglob(".*.part")]
        if not _has_result(run):
            kind = Kind.PUT_ASIDE if path.parent.name == ".stale" else Kind.FAILED
            paths = [path] if _may_go(kind, run) else []
        if paths:
            going |= {run} if kind in _WHOLE else set()
            yield _removable(run, kind, paths, [run])
    named, awaited = runs_by_training(runs_dir), _awaited(runs_dir)
    for path in sorted([*(runs_dir / FOLDER).glob("[!.]*/"), *(runs_dir / FOLDER / ".stale").glob("*/")]):
        training, runs = TrainingDir(path), named.get(path, [])
        if is_held(training.lock_file):
            continue
        if set(runs) <= going:
            yield _removable(training, Kind.UNNAMED, [path], runs)
        elif all(map(_has_result, runs)):
            checkpoints = training.checkpoint.parent
            kept = checkpoints.is_symlink() or path.name in awaited
            kinds = {
                Kind.CHECKPOINTS: [] if kept else sorted(checkpoints.glob("*")),
                Kind.HALF_WRITTEN: [file for file in path.rglob(".*.part") if file.parent != checkpoints],
            }
            yield from (_removable(training, kind, paths, runs) for kind, paths in kinds.items() if paths)


def remove(one: Removable) -> int:
    """Delete the files and return the bytes that this frees: 0 if a process works on it, or it is somebody else's."""
    place = one.place
    try:
        with hold(place.lock_file, place.busy):
            if not all(_may_go(one.kind, run) for run in _runs_of(place)):
                return 0
            if one.kind is Kind.CHECKPOINTS and place.path.name in _awaited(_runs_dir_of(place)):
                return 0
            for path in [*place.path.iterdir()] if one.kind in _WHOLE else one.paths:
                if path != place.lock_file:
                    shutil.rmtree(path) if path.is_dir() and not path.is_symlink() else path.unlink(missing_ok=True)
            if one.kind in _WHOLE:
                place.lock_file.unlink()
    except (Busy, FileNotFoundError, PermissionError):  # in a folder that several share, others' stay
        return 0
    if one.kind in _WHOLE:
        with suppress(OSError):  # not empty, for it was launched again meanwhile
            place.path.rmdir()  # not before, because NFS keeps open locks in the folder under another name
    return one.size


def free_checkpoints(run: RunDir) -> None:
    """Delete the checkpoints of a run's training, unless another run still needs them."""
    training = run.own_training
    paths = [*training.checkpoint.parent.glob("*")]
    if paths and all(map(_has_result, _runs_of(training))):
        remove(_removable(training, Kind.CHECKPOINTS, paths, [run]))


def _runs_of(place: RunDir | TrainingDir) -> list[RunDir]:
    """Return the run itself, or the runs that name the training by now."""
    if isinstance(place, RunDir):
        return [place]
    return runs_by_training(_runs_dir_of(place)).get(place.path, [])


def _runs_dir_of(training: RunDir | TrainingDir) -> Path:
    return training.path.parents[2 if training.path.parent.name == ".stale" else 1]


def _awaited(runs_dir: Path) -> set[str]:
    """Return the trainings with whose weights a run begins, as `init_from` has it, that has none of its own yet."""
    found = set()
    for file in runs_dir.glob("*/*/seed*/config.yaml"):
        run = RunDir(file.parent)
        with suppress(UserError, OSError, KeyError, TypeError):
            if b"\ninit_from:" in file.read_bytes() and not _has_result(run) and not run.checkpoint.is_file():
                found.add(str(run.config()["init_from"]["parent"].get("training")))
    return found


def _may_go(kind: Kind, run: RunDir) -> bool:
    """Return whether this run allows that what belongs to it is deleted."""
    if kind is Kind.UNNAMED:
        return not run.path.exists()
    if kind is Kind.PUT_ASIDE:
        return not run.finished
    return _failed_at_once(run) if kind is Kind.FAILED else _has_result(run)


def _failed_at_once(run: RunDir) -> bool:
    """Return whether a run ended with an error before its training had logged a step or written a checkpoint."""
    begun = run.finished or run.own_training.begun
    return not begun and state_of_unfinished(run, held=False)[0] is State.FAILED


def _removable(place: RunDir | TrainingDir, kind: Kind, paths: Sequence[Path], runs: Sequence[RunDir]) -> Removable:
    files = (file for path in paths for file in ([path] if path.is_file() else path.rglob("*")))
    return Removable(place, kind, tuple(paths), sum(f.lstat().st_size for f in files if not f.is_dir()), tuple(runs))


def _has_result(run: RunDir) -> bool:
    """Return whether the result can be read, or there will be none, as a search has pruned the run.

    If the result is truncated, the checkpoint is still needed to evaluate again.
    """
    try:
        stop = None if run.finished else read_stop(run)
        return bool(run.result()) if run.finished else stop is not None and stop.state is State.PRUNED
    except (UserError, OSError):
        return False
