"""Where runs stand, as their directories tell: nothing is composed, nothing is written, and no trainer is asked."""

import os
import re
from collections.abc import Iterable
from dataclasses import dataclass, replace
from enum import StrEnum
from math import isfinite
from pathlib import Path
from typing import Any

from etude.errors import UserError
from etude.runs.divergence import divergence
from etude.runs.lock import is_locked
from etude.runs.provenance import Code, code_of
from etude.runs.run_dir import RunDir
from etude.studies.study import load_study, study_names, value_at

_RUN = re.compile(r"seed(-?\d+)-[0-9a-f]+")
_TAIL = 16384  # bytes at the end of a log: room for a long traceback
_ERROR = re.compile(r"etude: |[A-Za-z_][\w.]*(Error|Exception)(:|$)")  # how a process says why it ends
_NO_ERROR = re.compile(
    r"\d\d:\d\d:\d\d |KeyboardInterrupt\b|etude: stopped;"
)  # it went on after that; or was asked to stop


class State(StrEnum):
    """Where a run stands in its sweep."""

    SKIPPED = "skipped"  # it was finished before the sweep began
    WAITING = "waiting"
    ELSEWHERE = "elsewhere"  # another process works on it
    RUNNING = "running"
    FINISHED = "finished"
    DIVERGED = "diverged"  # finished too, but what it found are no numbers; the same run would find them again
    FAILED = "failed"
    STOPPED = "stopped"  # the sweep was interrupted


DONE = (State.SKIPPED, State.FINISHED, State.DIVERGED)  # there is a result


@dataclass(frozen=True)
class Standing:
    """Where one run stands. A figure is None where the state has none or nobody has written it."""

    study: str
    arm: str
    seed: int
    run_dir: RunDir
    state: State
    doing: str | None = None  # of a running one: "starting", "training" or "evaluating"
    step: int | None = None
    max_steps: int | None = None
    loss: float | None = None  # nats a target token, as trained
    tokens_per_second: float | None = None
    seconds_left: float | None = None  # of training
    seconds: float | None = None  # that training took
    perplexity: float | None = None  # of the test set
    bleu: float | None = None  # of the test set
    error: str | None = None  # what a failed one said last, and how a diverged one did
    code: Code | None = None  # of a finished one: was it made by the code of today?
    typed: str = ""  # of one that is no arm of a study: the overrides, which tell it from its neighbours


@dataclass(frozen=True)
class StudyStanding:
    """The runs of one study, in the order of its arms."""

    study: str
    runs: list[Standing]
    missing: list[str]  # arms without any directory of a run
    notes: list[str]  # a sentence for each directory that is not as it should be


def studies_in(runs_dir: Path) -> tuple[list[str], list[str]]:
    """The folders of `runs_dir` that hold runs, and a sentence for each that holds none."""
    folders = {folder.name: any(folder.glob("*/seed*/")) for folder in _folders(runs_dir)}
    notes = [f"Left out: {runs_dir / name}, which holds no runs." for name, runs in folders.items() if not runs]
    return [name for name, runs in folders.items() if runs], notes


def study_standing(study: str, runs_dir: Path) -> StudyStanding:
    """Where the runs of `study` stand; a folder of runs that is no study's, such as `single`, has no arms to miss.

    Raises:
        UserError: the study's own files are not as they should be.
    """
    arms = list(load_study(study).arms) if study in study_names() else None
    runs, notes, begun = [], [], set()
    for folder in _folders(runs_dir / study):
        if arms is not None and folder.name not in arms:
            notes.append(f"{folder}: the study has no arm {folder.name}.")
        for directory in _folders(folder):
            begun.add(folder.name)
            try:
                run = standing(RunDir(directory))
                runs.append(run if arms is not None else replace(run, typed=" ".join(run.run_dir.overrides())))
            except (UserError, OSError, ValueError, TypeError, AttributeError) as error:
                notes.append(f"Left out: {directory}, which cannot be read ({error}).")
    order = {arm: place for place, arm in enumerate(arms or [])}
    runs.sort(key=lambda run: (order.get(run.arm, len(order)), run.arm, run.seed))
    return StudyStanding(study, runs, [arm for arm in order if arm not in begun], notes)


def standing(run: RunDir) -> Standing:
    """Where one run stands.

    Raises:
        UserError: one of its files is torn.
        ValueError: the directory is no run's, or one of its files is not as it should be.
        OSError: it cannot be read.
    """
    study, arm, name = run.path.parts[-3:]
    named = _RUN.fullmatch(name)
    if named is None or not run.config_file.is_file():
        raise ValueError("it is named otherwise than a run" if named is None else "it has no config.yaml")
    run.config()  # a torn one is no run to count
    state, figures = _told(run)
    return Standing(study, arm, int(named[1]), run, state, **figures)


def last_error(log_file: Path) -> str | None:
    """The line with which a run died, or None where it was asked to stop, was killed, or went on after it."""
    with log_file.open("rb") as log:
        log.seek(max(0, log.seek(0, os.SEEK_END) - _TAIL))
        lines = log.read().decode("utf-8", errors="replace").splitlines()
    for line in reversed(lines):
        if _NO_ERROR.match(line):
            return None
        if _ERROR.match(line) and "another process is training" not in line:  # it spoke for itself, not for the run
            return line.rstrip()
    return None


def _told(run: RunDir) -> tuple[State, dict[str, Any]]:
    """The state of a run and its figures, by the names in `Standing`."""
    held = not run.finished and is_locked(run)
    if run.finished:  # asked again: it may have become so meanwhile
        result = run.result()
        figures: dict[str, Any] = {
            "step": int(result["steps"]) if "steps" in result else None,
            "seconds": _seconds(result.get("seconds")),
            "code": code_of(run, result),
        }
        if why := divergence(result):
            return State.DIVERGED, figures | {"error": why}
        scores = {"perplexity": "test.perplexity", "bleu": "test.bleu"}
        return State.FINISHED, figures | {name: _float(value_at(result, key)) for name, key in scores.items()}
    if not held and not _has_text(run.log_file):
        return State.WAITING, {}
    told = run.progress() or {}
    steps = {key: int(told[key]) for key in ("step", "max_steps") if key in told}
    if not held:
        error = last_error(run.log_file)
        return (State.FAILED if error else State.STOPPED), steps | {"error": error}
    if not told or _told_before(run):
        return State.RUNNING, {"doing": "starting"}
    return State.RUNNING, steps | {
        "doing": str(told.get("state", "training")),
        "loss": _float(told.get("loss")),
        "tokens_per_second": _float(told.get("tokens_per_second")),
        "seconds_left": _seconds(told.get("seconds_left")),
    }


def _told_before(run: RunDir) -> bool:
    """Whether the progress is an earlier process's: each begins with noting its environment."""
    environment = run.environment_file
    return environment.exists() and run.progress_file.stat().st_mtime < environment.stat().st_mtime


def _has_text(file: Path) -> bool:
    return file.is_file() and file.stat().st_size > 0


def _folders(folder: Path) -> Iterable[Path]:
    """The folders in a folder, by name, hidden ones left out; none where there is no such folder."""
    inside = folder.iterdir() if folder.is_dir() else ()
    return sorted(path for path in inside if not path.name.startswith(".") and path.is_dir())


def _float(value: Any) -> float | None:
    return None if value is None else float(value)


def _seconds(value: Any) -> float | None:
    seconds = _float(value)
    if seconds is not None and not isfinite(seconds):
        raise ValueError(f"{seconds} seconds")
    return seconds
