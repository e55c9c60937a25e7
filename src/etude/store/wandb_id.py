"""The W&B id of a run: chosen at random when the run is first logged, and kept in its directory.

`wandb/<id>.rows` holds a line per row logged under the id: its step, with "v" if it is of a validation and "c1", "c2",
... if it is the first, second, ... that callbacks have logged at that step. The run's hash alone is not unique: two
studies may each train the same run, and a run that is deleted and trained again must be another curve.
"""

import hashlib
import io
import re
import secrets
from collections.abc import Sequence
from pathlib import Path

from etude.files import write_text
from etude.store.run_dir import RunDir

Row = tuple[int, str]  # its step, and what follows the step in the file

MAX_NAME, MAX_TAG = 128, 64  # characters that W&B allows
_ROW = re.compile(r"(\d+)(v|c\d+|)")


def make_tag(key: str, value: str) -> str:
    """Return the tag "key=value"; in place of what W&B would refuse as too long stands a hash of it all."""
    tag = f"{key}={value}"
    return tag if len(tag) <= MAX_TAG else f"{tag[: MAX_TAG - 9]}-{hashlib.sha256(tag.encode()).hexdigest()[:8]}"


def rows_file(run: RunDir, id: str) -> Path:
    """Return the file that lists the rows logged under an id."""
    return run.path / "wandb" / f"{id}.rows"


def read_rows(run: RunDir, id: str) -> list[Row | None]:
    """Read which rows were logged under an id, in their order; None for one of which only that is known.

    A last line that was cut off counts as not written.
    """
    file = rows_file(run, id)
    written = file.read_text(encoding="utf-8", errors="replace") if file.is_file() else ""
    return [(int(found[1]), found[2]) if (found := _ROW.fullmatch(line)) else None for line in written.split("\n")[:-1]]


def keep_rows(run: RunDir, id: str, rows: Sequence[Row | None]) -> io.FileIO:
    """Write the rows anew, and open the file for those to come."""
    write_text(rows_file(run, id), "".join(format_row(row).decode() for row in rows))
    return rows_file(run, id).open("ab", buffering=0)


def format_row(row: Row | None) -> bytes:
    """Format a row as a line of the file; "?" if only its existence is known."""
    return b"?\n" if row is None else f"{row[0]}{row[1]}\n".encode()


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


def has_only_offline(run: RunDir) -> bool:
    """Return whether callbacks have logged rows that are in W&B's offline files alone: `metrics.csv` lacks them."""
    return is_kept_back(run) and any(row and row[1].startswith("c") for row in read_rows(run, own_id(run)))


def _hash(run: RunDir) -> str:
    return run.path.name.rpartition("-")[2]


def _newest(run: RunDir, ids: str) -> str | None:
    files = sorted(rows_file(run, "").parent.glob(f"{ids}.rows"), key=lambda file: file.stat().st_mtime)
    return files[-1].stem if files else None
