"""The state of a run, the progress of an unfinished one, and where a search wants it to stop."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from math import isfinite
from typing import Any, NamedTuple

from etude.files import read_json, write_json
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
    PAUSED = "paused"  # its search, or W&B's button, wanted it to stop here; it may go on
    PRUNED = "pruned"  # its search stopped it for good, as others were better


STYLES = {
    State.RUNNING: "cyan",
    State.FAILED: "bold red",
    State.DIVERGED: "bold magenta",
    State.STOPPED: "yellow",
    State.PAUSED: "blue",
    State.FINISHED: "green",
    State.ELSEWHERE: "dim",
    State.WAITING: "dim",
    State.SKIPPED: "dim",
    State.PRUNED: "dim",
}
"""The style of each state on a terminal, the most important state first."""

DONE = (State.SKIPPED, State.FINISHED, State.DIVERGED)  # the states in which a run has a result


class Stop(NamedTuple):
    """Where a search wants a run to stop before its end, and what the run is from then on.

    It stands in `stop.json` in the directory of the run. The process that trains looks there at every validation and
    about once a second, saves a checkpoint at that step or later, and ends; it may run on any machine. Without the
    file, the same run goes on to its end.

    Attributes:
        step: the step; a run that is past it stops at once.
        state: `State.PAUSED`, if it may be promoted later, or `State.PRUNED`.
    """

    step: int
    state: State


class StoppedBySearch(KeyboardInterrupt):
    """A run stopped where its search wanted it to."""

    exit_status = 4


def read_stop(run: RunDir) -> Stop | None:
    """Read where a run is to stop; None if it is to be trained to its end."""
    found = read_json(run.stop_file)
    return Stop(int(found["step"]), State(found["state"])) if found else None


def write_stop(run: RunDir, stop: Stop | None) -> None:
    """Say where a run is to stop, or with None that it is to be trained to its end."""
    if stop is None:
        run.stop_file.unlink(missing_ok=True)
    elif stop != read_stop(run):
        write_json(run.stop_file, stop._asdict())


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
    error, last = last_error(run.log_file), run.progress() or {}
    progress = _progress(None, {key: last[key] for key in ("step", "max_steps") if key in last})
    if not error and (stop := read_stop(run)) and (progress.step or 0) >= stop.step:
        return stop.state, None, progress
    if not run.log_file.is_file():  # a process opens the log when it starts
        return State.WAITING, None, NO_PROGRESS
    return State.FAILED if error else State.STOPPED, error, progress


def _progress(doing: str | None, fields: Mapping[str, Any]) -> Progress:
    step, max_steps = (int(fields[key]) if key in fields else None for key in ("step", "max_steps"))
    loss, rate, left = (_number(fields.get(key)) for key in ("loss", "tokens_per_second", "seconds_left"))
    return Progress(doing, step, max_steps, loss, rate, left if left is not None and isfinite(left) else None)


def _number(value: Any) -> float | None:
    return None if value is None else float(value)
