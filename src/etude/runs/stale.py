"""Move runs computed by other code than today's out of the way, on request (`stale=rerun`)."""

from contextlib import suppress
from itertools import count
from typing import Any

from etude.errors import UserError
from etude.files import read_json
from etude.paths import find_file
from etude.runs.lock import Busy, hold_lock, is_locked
from etude.runs.provenance import Code, code_of_run
from etude.runs.run_dir import RunDir
from etude.yaml_file import read_yaml

_PATIENCE = 1.0  # seconds for another launcher to put the run aside


def put_aside(run: RunDir) -> dict[str, Any]:
    """Move a run of other code, finished or not, to `.stale` beside it, unless a process is training it or about to.

    Nothing is deleted: `<arm>/.stale/<run>-other` is still the directory of a run.

    Returns:
        The metrics that this run was scored by when it was put aside, now or before; empty if it never was.
    """
    aside = run.path.parent / ".stale"
    of_today = (None, Code.SAME)
    if code_of_run(run) not in of_today and not is_locked(run):
        with suppress(Busy), hold_lock(run, _PATIENCE):
            if (code := code_of_run(run)) not in of_today:  # else another launcher has put it aside meanwhile
                name = f"{run.path.name}-{code}"
                places = (aside / (name if number == 1 else f"{name}-{number}") for number in count(1))
                aside.mkdir(exist_ok=True)
                run.path.rename(next(path for path in places if not path.exists()))
    before = [RunDir(path) for path in sorted(aside.glob(f"{run.path.name}-*"))]
    return {name: part for one in before for name, part in _metrics_of(one).items()}


def _metrics_of(run: RunDir) -> dict[str, Any]:
    """Return the metrics of the run's config, and those from `conf/metrics` that it was scored by later."""
    scores = (read_json(run.result_file) or {}).get("test") or {}
    files = (find_file("conf", f"metrics/{name}.yaml") for name in scores)
    parts = {name: part for file in files if file.is_file() for name, part in read_yaml(file).items()}
    found = {name: part for name, part in parts.items() if name in scores}
    with suppress(UserError):  # a config that was damaged since
        found |= run.config().get("metrics") or {}
    return found
