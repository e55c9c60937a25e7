"""What other code has made, put aside on request."""

from collections.abc import Mapping
from itertools import count
from typing import Any

from etude.runs.code import code_fingerprint
from etude.runs.lock import Busy, hold_lock
from etude.runs.provenance import Code, recorded_code
from etude.runs.run_dir import RunDir


def put_aside(run: RunDir, config: Mapping[str, Any]) -> None:
    """Move a run of other code, finished or not, to `.stale` beside it; one that somebody is training stays.

    Nothing is deleted: `<arm>/.stale/<run>-<code>` is still the directory of a run.
    """
    code = recorded_code(run)
    if not (run.finished or run.environment_file.exists()) or code == code_fingerprint(config):
        return
    aside = run.path.parent / ".stale"
    name = f"{run.path.name}-{code or Code.UNKNOWN}"
    free = (path for number in count(1) if not (path := aside / (name if number == 1 else f"{name}-{number}")).exists())
    try:
        with hold_lock(run, 0):
            aside.mkdir(exist_ok=True)
            run.path.rename(next(free))
    except Busy:
        return
