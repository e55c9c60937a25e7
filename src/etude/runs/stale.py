"""Move runs computed by other code than today's out of the way, on request (`stale=rerun`)."""

from collections.abc import Mapping
from itertools import count
from typing import Any

from etude.paths import find_file
from etude.runs.code import code_fingerprint
from etude.runs.lock import Busy, hold_lock, is_locked
from etude.runs.provenance import Code, recorded_code
from etude.runs.run_dir import RunDir
from etude.yaml_file import read_yaml


def put_aside(run: RunDir) -> dict[str, Any]:
    """Move a run of other code, finished or not, to `.stale` beside it, unless a process is training it or about to.

    Nothing is deleted: `<arm>/.stale/<run>-<code>` is still the directory of a run.

    Returns:
        The metrics that the moved run was scored by; empty if it was not moved.
    """
    code = recorded_code(run)
    if not (run.finished or run.environment_file.exists()) or code == code_fingerprint(config := run.config()):
        return {}
    if is_locked(run):
        return {}
    metrics = _metrics_of(run, config)
    aside = run.path.parent / ".stale"
    name = f"{run.path.name}-{code or Code.UNKNOWN}"
    free = (path for number in count(1) if not (path := aside / (name if number == 1 else f"{name}-{number}")).exists())
    try:
        with hold_lock(run, 0):
            aside.mkdir(exist_ok=True)
            run.path.rename(next(free))
    except Busy:
        return {}
    return metrics


def _metrics_of(run: RunDir, config: Mapping[str, Any]) -> dict[str, Any]:
    """Return the metrics of the run's config, and those from `conf/metrics` that it was scored by later."""
    scores = (run.result().get("test") or {}) if run.finished else {}
    files = (find_file("conf", f"metrics/{name}.yaml") for name in scores)
    parts = {name: part for file in files if file.is_file() for name, part in read_yaml(file).items()}
    return {name: part for name, part in parts.items() if name in scores} | (config.get("metrics") or {})
