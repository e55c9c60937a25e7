"""Record which code computes a run: étude's by a number that is raised by hand, the user's by its files."""

from collections.abc import Mapping
from typing import Any

from etude.runs.own_parts import hash_own_files

RESULTS_VERSION = 1
"""Raised in the commit that changes the result of any config on purpose: weights, losses or scores, beyond rounding.

The same commit stores the new values in `tests/golden`, whose test notices a change that was not on purpose. Reports
mark the results of every other number, so it stays when code is moved, renamed or made faster.
"""


def record_code(config: Mapping[str, Any], begun: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """Return what is recorded of the code that computes a run; what differs from the code before is a list of both.

    Args:
        config: the config of the run.
        begun: what was recorded when the run was left, whatever is left of it; None if it begins.
    """
    number, files = RESULTS_VERSION, hash_own_files(config)
    if begun is None:
        return {"results_version": number, "own_files": files}
    before = begun.get("own_files") or {}
    changed = {path: _both(digest, files.get(path, digest)) for path, digest in before.items()}
    return {"results_version": _both(begun.get("results_version"), number), "own_files": files | changed}


def _both(before: Any, now: Any) -> Any:
    known = before if isinstance(before, list) else [before]
    found = [*known, now] if now not in known else known
    return found if len(found) > 1 else now
