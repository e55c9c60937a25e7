"""Move runs computed by other code than today's out of the way, on request (`stale=rerun`)."""

from contextlib import ExitStack, suppress
from itertools import count
from pathlib import Path

from etude.store.lock import Busy, hold
from etude.store.provenance import Code, code_of_run
from etude.store.run_dir import RunDir, runs_by_training
from etude.store.training_dir import FOLDER


def put_aside(run: RunDir) -> None:
    """Move the training of a run of other code and all runs that name it to `.stale`, unless a process works on one.

    Nothing is deleted: `<arm>/.stale/<run>-other` is still the directory of a run, finished or not.
    """
    code = code_of_run(run)
    if code not in (None, Code.SAME):
        training = run.own_training
        runs = runs_by_training(run.runs_dir).get(training.path, [run])
        with suppress(Busy), ExitStack() as locks:
            for one in runs:
                locks.enter_context(hold(one.lock_file, one.busy))
            training.path.parent.mkdir(exist_ok=True)
            locks.enter_context(hold(training.lock_file, training.busy))
            if code_of_run(run) == code:  # else another launcher has put it aside meanwhile
                aside = _move(training.path, f"{training.path.name}-{code}")  # first: nothing may go on from it
                for one in runs:
                    moved = RunDir(_move(one.path, f"{one.path.name}-{code}"))
                    moved.link_training(str(aside.relative_to(run.runs_dir / FOLDER)))


def _move(path: Path, name: str) -> Path:
    """Move a folder, if it is there, to `.stale` beside it, under a name that is free; return its new path."""
    places = (path.parent / ".stale" / (name if number == 1 else f"{name}-{number}") for number in count(1))
    place = next(place for place in places if not place.exists())
    place.parent.mkdir(exist_ok=True)
    with suppress(FileNotFoundError):
        path.rename(place)
    return place
