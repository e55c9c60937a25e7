"""Record which code computes a run: étude's by a number that is raised by hand, the user's by its files."""

from collections.abc import Mapping
from typing import Any

from etude.store.own_parts import hash_own_files

RESULTS_VERSION = 1
"""Raised in the commit that changes, on purpose, the result of any config of a release, beyond rounding.

The same commit stores the new values in `tests/golden`, whose test notices a change that was not on purpose. Reports
mark the results of every other number, so it stays when code is moved, renamed or made faster.
"""


def record_code(config: Mapping[str, Any]) -> dict[str, Any]:
    """Return what is recorded of the code that computes a run: the number, and the user's files with their SHA-256."""
    return {"results_version": RESULTS_VERSION, "own_files": hash_own_files(config)}


def merge_code(begun: Mapping[str, Any], now: Mapping[str, Any]) -> dict[str, Any]:
    """Return what is recorded of a run that went on under other code: what differs is a list of both.

    Args:
        begun: what was recorded of the code before, whatever is left of it.
        now: what is recorded of today's.
    """
    before, files = begun.get("own_files") or {}, now["own_files"]
    changed = {path: _both(digest, files.get(path, digest)) for path, digest in before.items()}
    number = _both(begun.get("results_version"), now["results_version"])
    return {"results_version": number, "own_files": files | changed}


def _both(before: Any, now: Any) -> Any:
    known = before if isinstance(before, list) else [before]
    found = [*known, now] if now not in known else known
    return found if len(found) > 1 else now
