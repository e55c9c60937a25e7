"""Write files atomically, so that a reader never sees an incomplete one."""

import errno
import hashlib
import json
import os
import secrets
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any
from zipfile import ZipFile

from etude.errors import UserError

_WAYS_OUT = {
    errno.ENOSPC: "free some space or choose another place",
    errno.EDQUOT: "free some space or choose another place",
    errno.EACCES: "choose another place",
    errno.EROFS: "choose another place",
    errno.EIO: "the disk may be failing: choose another place",
    errno.EEXIST: "move it out of the way",
    errno.EISDIR: "move it out of the way",
    errno.ENOTDIR: "move what stands in its way",
    errno.ENAMETOOLONG: "shorten it",
}


def disk_mistake(error: BaseException) -> UserError | None:
    """Convert an OSError of the disk to a UserError; None for any other error."""
    if not isinstance(error, OSError) or error.errno not in _WAYS_OUT:
        return None
    return UserError(f"{error.filename or 'the output'}: {error.strerror}; {_WAYS_OUT[error.errno]}, then start again")


def temporary_path(path: Path) -> Path:
    """Return a path beside `path` that no other process uses, on this machine or another; `etude clean` knows such."""
    return path.with_name(f".{path.name}.{secrets.token_hex(8)}.part")  # in a container, every process may be number 1


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """Yield a temporary path beside `path`, which is renamed to it on success and removed on failure.

    Raises:
        UserError: the file cannot be written (a full disk, a missing permission).
    """
    if path.is_dir():
        raise UserError(f"cannot write {path}, which is a folder: name a file")
    temporary = temporary_path(path)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        yield temporary
        with temporary.open("rb") as file:
            os.fsync(file.fileno())
        temporary.replace(path)
    except OSError as error:
        way_out = _WAYS_OUT.get(error.errno or 0, "choose another place")
        raise UserError(
            f"cannot write {path}: {error.strerror or error}; {way_out}, "
            "then start again: nothing that was finished is lost"
        ) from error
    finally:
        with suppress(OSError):  # the folder may not exist
            temporary.unlink()


def write_text(path: Path, text: str) -> None:
    """Write `text` to `path` atomically."""
    with replacing(path) as temporary:
        temporary.write_text(text, encoding="utf-8")


def typed_path(name: str) -> Path:
    """Return the path that a user types, where ~ is the home folder; ~x, which is no user's, stays."""
    with suppress(RuntimeError):
        return Path(name).expanduser()
    return Path(name)


def write_or_print(name: str, text: str) -> None:
    """Write `text` to the file of that name, or to standard output if the name is -."""
    if name == "-":
        sys.stdout.write(text)
    else:
        write_text(typed_path(name), text)


def write_or_print_page(name: str, page: str) -> None:
    """Write an HTML page to the file of that name and print its address, or to standard output if the name is -."""
    write_or_print(name, page)
    if name != "-":
        sys.stdout.write(f"{typed_path(name).resolve().as_uri()}  open it in a browser\n")


def format_json(value: Any) -> str:
    """Format `value` as JSON for people and programs: indented, with letters such as é as they are."""
    return json.dumps(value, indent=2, ensure_ascii=False) + "\n"


def write_json(path: Path, value: Any) -> None:
    """Write `value` to `path` as JSON, atomically."""
    write_text(path, format_json(value))


def read_json(path: Path) -> Any:
    """Load a JSON file; None if it does not exist or is not valid."""
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None


def checksum(path: Path, algorithm: str = "sha256") -> str:
    """Return the hash of a file in hex digits, by any algorithm of hashlib's."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, algorithm).hexdigest()


def look_again(folder: Path) -> None:
    """Have a network file system ask its server what is in a folder, of which it may remember an earlier state."""
    with suppress(OSError):
        folder.chmod(folder.stat().st_mode)


def is_whole_archive(path: Path) -> bool:
    """Return whether the file is an undamaged zip archive, by its checksums; this takes half a second per gigabyte."""
    try:
        with ZipFile(path) as archive:
            return archive.testzip() is None
    except Exception:  # a truncated or foreign file may raise anything
        return False


def remove_leftovers(folder: Path) -> None:
    """Remove temporary files of killed processes; no other process may be writing in `folder` or below."""
    for leftover in folder.rglob(".*.part"):
        leftover.unlink(missing_ok=True)
