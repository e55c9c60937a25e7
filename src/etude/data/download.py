"""Download one file, resuming an interrupted download; the file is kept only if its checksum is right."""

import http.client
import logging
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path

from filelock import FileLock

from etude.errors import UserError
from etude.files import checksum

logger = logging.getLogger(__name__)

TIMEOUT = 30.0
"""Seconds without a byte after which the connection counts as lost."""


def download(url: str, path: Path, expected: str | None) -> None:
    """Download `url` to `path`, unless it exists. Safe to call from many processes: one of them downloads.

    A partial download is kept in `<name>.part`; the next call requests only the rest.

    Args:
        url, path: where from, where to.
        expected: the checksum, as `verify_checksum` takes it; None if it is not known: any complete file is accepted.

    Raises:
        UserError: the server cannot be reached or breaks off, the checksum differs (nothing is kept), the disk is full.
    """
    part = path.with_name(path.name + ".part")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with FileLock(path.with_name(f".{path.name}.lock")):
            if path.is_file() and (expected is None or _checksum_like(path, expected) == expected):
                return
            logger.info("downloading %s", url)
            _receive(url, part)
            try:
                if expected is not None:
                    verify_checksum(part, expected, name=url)
            except UserError:
                part.unlink()
                raise
            part.replace(path)
    except OSError as error:
        raise UserError(
            f"cannot write {path}: {error.strerror or error}; free some space or choose another place, then start again"
        ) from error


def verify_checksum(path: Path, expected: str, name: str) -> None:
    """Check a file against its checksum.

    Args:
        path: the file.
        expected: its SHA-256, or "md5:" and its MD5 if its publisher gives that.
        name: its name in the error message.

    Raises:
        UserError: the checksums differ; the message shows both.
    """
    found = _checksum_like(path, expected)
    if found != expected:
        kind = "MD5" if expected.startswith(_MD5) else "SHA-256"
        raise UserError(
            f"{name} is not the file it should be: expected {kind} {expected.removeprefix(_MD5)}, "
            f"got {found.removeprefix(_MD5)}; get it anew from its source"
        )


_MD5 = "md5:"


def _checksum_like(path: Path, expected: str) -> str:
    """Compute the checksum of a file with the algorithm of `expected`."""
    return _MD5 + checksum(path, "md5") if expected.startswith(_MD5) else checksum(path)


def _receive(url: str, part: Path) -> None:
    """Append the missing bytes of `url` to `part`, or write all of it if the server cannot resume."""
    have = part.stat().st_size if part.is_file() else 0
    request = urllib.request.Request(url, headers={"Range": f"bytes={have}-"} if have else {})
    try:
        response = urllib.request.urlopen(request, timeout=TIMEOUT)
    except urllib.error.HTTPError as error:
        if error.code == http.client.REQUESTED_RANGE_NOT_SATISFIABLE:
            _require_size(part, error.headers.get("Content-Range", ""), url)
            return  # nothing is missing; the checksum is checked afterwards
        raise UserError(f"{url}: the server answers {error.code} {error.reason}; check data.url") from error
    except (OSError, http.client.HTTPException) as error:
        raise UserError(
            f"cannot reach {url} ({getattr(error, 'reason', error)}); to go on without a network, put {part.stem} and "
            "the other files of the corpus into a folder and set data.root=FOLDER"
        ) from error
    with response:
        resumed = response.status == http.client.PARTIAL_CONTENT
        with part.open("ab" if resumed else "wb") as file:
            for chunk in _read_chunks(response, url):
                file.write(chunk)


def _require_size(part: Path, content_range: str, url: str) -> None:
    """Check that `part` is not longer than the file, whose size the server gives as "bytes */1234"."""
    size = content_range.rpartition("/")[2]
    if size.isdecimal() and part.stat().st_size != int(size):
        part.unlink()
        raise UserError(f"{url}: what had come of it is longer than the file, and is deleted now: start again")


def _read_chunks(response: http.client.HTTPResponse, url: str) -> Iterator[bytes]:
    """Yield the body of a response as it arrives.

    Raises:
        UserError: it ends early.
    """
    reason: object = "the connection was closed early"
    try:
        while chunk := response.read1(1 << 16):
            yield chunk
        complete = not response.length
    except (OSError, http.client.HTTPException) as error:
        complete, reason = False, error
    if not complete:
        raise UserError(f"{url} broke off ({reason}); start again, and the download goes on from where it stopped")
