"""Create a folder atomically, once, even if several processes try."""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from filelock import FileLock


@contextmanager
def make_folder(folder: Path) -> Iterator[Path | None]:
    """Yield a temporary folder, renamed to `folder` on success and removed on failure; None if `folder` exists."""
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
