"""Under which id W&B knows a run: drawn when the run is first logged, and kept in its directory.

`wandb/<id>.rows` holds a byte for each row that was logged under the id. The run's hash alone would not do: two studies
may have trained the same run each for itself, and one that is deleted and trained again is another curve.
"""

import secrets
from pathlib import Path

from etude.runs.run_dir import RunDir


def rows_file(run: RunDir, id: str) -> Path:
    """What counts the rows that were logged under an id."""
    return run.path / "wandb" / f"{id}.rows"


def own_id(run: RunDir) -> str:
    """The id that the run was begun with; of one that begins, a new one, which is kept: its hash and a drawn ending."""
    if kept := _newest(run, f"{_hash(run)}*"):
        return kept
    file = rows_file(run, f"{_hash(run)}-{secrets.token_hex(3)}")
    file.parent.mkdir(exist_ok=True)
    file.touch()
    return file.stem


def logged_as(run: RunDir) -> str:
    """The id under which W&B knows a run: its own, or what an agent of W&B called it last."""
    return _newest(run, "*") or _hash(run)  # the hash was the id where none is kept


def is_kept_back(run: RunDir) -> bool:
    """Whether something of the run was logged offline and has not been sent since."""
    return any(not [*part.glob("*.synced")] for part in run.path.glob("wandb/offline-run-*"))


def _hash(run: RunDir) -> str:
    return run.path.name.rpartition("-")[2]


def _newest(run: RunDir, ids: str) -> str | None:
    files = sorted(rows_file(run, "").parent.glob(f"{ids}.rows"), key=lambda file: file.stat().st_mtime)
    return files[-1].stem if files else None
