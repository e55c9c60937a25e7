"""The state of a run, and the progress of an unfinished one."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from math import isfinite
from typing import Any

from etude.store.log import last_error
from etude.store.run_dir import RunDir


class State(StrEnum):
    """The state of a run, as seen by its sweep."""

    SKIPPED = "skipped"  # finished before the sweep began
    WAITING = "waiting"
    ELSEWHERE = "elsewhere"  # another process works on it
    RUNNING = "running"
    FINISHED = "finished"
    DIVERGED = "diverged"  # finished, but without usable scores; the same run would diverge again
    FAILED = "failed"
    STOPPED = "stopped"  # the sweep was interrupted


STYLES = {
    State.RUNNING: "cyan",
    State.FAILED: "bold red",
    State.DIVERGED: "bold magenta",
    State.STOPPED: "yellow",
    State.FINISHED: "green",
    State.ELSEWHERE: "dim",
    State.WAITING: "dim",
    State.SKIPPED: "dim",
}
"""The style of each state on a terminal, the most important state first."""

DONE = (State.SKIPPED, State.FINISHED, State.DIVERGED)  # the states in which a run has a result


@dataclass(frozen=True)
class Progress:
    """The progress of an unfinished run. A field is None if it has not been recorded."""

    doing: str | None = None  # of a running run: "starting", "training" or "evaluating"
    step: int | None = None
    max_steps: int | None = None
    loss: float | None = None  # training loss in nats per target token
    tokens_per_second: float | None = None
    seconds_left: float | None = None  # until the end of training


NO_PROGRESS = Progress()


def read_progress(run_dir: RunDir, since: float) -> Progress:
    """Read the progress that a running process last recorded.

    Args:
        run_dir: the directory of the run.
        since: when the process began, in seconds since the epoch; an older record is that of an earlier process.
    """
    try:
        stale = run_dir.progress_file.stat().st_mtime < since
    except OSError:
        stale = True
    fields = {} if stale else run_dir.progress() or {}
    if not fields or fields.get("state") == "starting":  # which each process writes first
        return Progress("starting")
    return _progress(str(fields.get("state", "training")), fields)


def state_of_unfinished(run: RunDir, held: bool) -> tuple[State, str | None, Progress]:
    """Find state, error and progress of a run that has no result.

    Args:
        run: the directory of the run.
        held: whether a process works on it.
    """
    if held:
        return State.RUNNING, None, read_progress(run, 0)
    if not run.log_file.is_file():  # a process opens the log when it starts
        return State.WAITING, None, NO_PROGRESS
    error, last = last_error(run.log_file), run.progress() or {}
    progress = _progress(None, {key: last[key] for key in ("step", "max_steps") if key in last})
    return State.FAILED if error else State.STOPPED, error, progress


def _progress(doing: str | None, fields: Mapping[str, Any]) -> Progress:
    step, max_steps = (int(fields[key]) if key in fields else None for key in ("step", "max_steps"))
    loss, rate, left = (_number(fields.get(key)) for key in ("loss", "tokens_per_second", "seconds_left"))
    return Progress(doing, step, max_steps, loss, rate, left if left is not None and isfinite(left) else None)


def _number(value: Any) -> float | None:
    return None if value is None else float(value)
