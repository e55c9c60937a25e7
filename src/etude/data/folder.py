"""Making a folder whole or not at all, once, however many processes ask for it."""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from filelock import FileLock


@contextmanager
def make_folder(folder: Path) -> Iterator[Path | None]:
    """A folder to fill, renamed to `folder` on success and removed on failure; None where `folder` is there already."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    building = folder.with_name(f".{folder.name}.building")
    with FileLock(folder.with_name(f".{folder.name}.lock")):
        if folder.is_dir():
            yield None
            return
        shutil.rmtree(building, ignore_errors=True)
        building.mkdir()
        try:
            yield building
            building.rename(folder)
        finally:
            shutil.rmtree(building, ignore_errors=True)
