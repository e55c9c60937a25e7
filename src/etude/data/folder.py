"""Create a folder atomically, once, even if several processes try."""

import logging
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from filelock import FileLock, Timeout

logger = logging.getLogger(__name__)


@contextmanager
def make_folder(folder: Path, is_made: Callable[[Path], object] = Path.is_dir) -> Iterator[Path | None]:
    """Yield a temporary folder, renamed to `folder` on success and removed on failure; None if `folder` is made.

    Of several processes one makes it, and the others wait. What a killed process left of it is removed.
    """
    if is_made(folder):
        yield None
        return
    folder.parent.mkdir(parents=True, exist_ok=True)
    building = folder.with_name(f".{folder.name}.building")
    lock = FileLock(folder.with_name(f".{folder.name}.lock"))
    try:
        lock.acquire(timeout=0)
    except Timeout:
        logger.info("waiting for another process that prepares the same data")
        lock.acquire()
    try:
        if is_made(folder):
            yield None
            return
        shutil.rmtree(building, ignore_errors=True)
        building.mkdir()
        yield building
        shutil.rmtree(folder, ignore_errors=True)
        building.rename(folder)
    finally:
        shutil.rmtree(building, ignore_errors=True)
        lock.release()
