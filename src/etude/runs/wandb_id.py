"""The W&B id of a run: chosen at random when the run is first logged, and kept in its directory.

`wandb/<id>.rows` holds one byte per row logged under the id. The run's hash alone is not unique: two studies may each
train the same run, and a run that is deleted and trained again must be another curve.
"""

import secrets
from pathlib import Path

from etude.runs.run_dir import RunDir


def rows_file(run: RunDir, id: str) -> Path:
    """Return the file that counts the rows logged under an id."""
    return run.path / "wandb" / f"{id}.rows"


def own_id(run: RunDir) -> str:
    """Return the run's own W&B id; if it has none, create and store one: its hash and a random suffix."""
    if kept := _newest(run, f"{_hash(run)}*"):
        return kept
    file = rows_file(run, f"{_hash(run)}-{secrets.token_hex(3)}")
    file.parent.mkdir(exist_ok=True)
    file.touch()
    return file.stem


def logged_as(run: RunDir) -> str:
    """Return the id that the run was last logged under: its own, or one that a W&B agent gave it."""
    return _newest(run, "*") or _hash(run)  # older runs stored no id and used the hash


def is_kept_back(run: RunDir) -> bool:
    """Return whether the run was logged offline and some of that has not been synced to W&B yet."""
    return any(not [*part.glob("*.synced")] for part in run.path.glob("wandb/offline-run-*"))


def _hash(run: RunDir) -> str:
    return run.path.name.rpartition("-")[2]


def _newest(run: RunDir, ids: str) -> str | None:
    files = sorted(rows_file(run, "").parent.glob(f"{ids}.rows"), key=lambda file: file.stat().st_mtime)
    return files[-1].stem if files else None
