"""Fetching one file over the network: resumed where it broke off, and kept only if its checksum is right."""

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
"""Seconds without a byte after which a server counts as gone."""


def download(url: str, path: Path, expected: str | None) -> None:
    """Bring `url` to `path`, unless it is there already. Many processes may ask at once; one of them downloads.

    What has arrived is kept in `<name>.part`; the next call asks the server for the rest alone.

    Args:
        url, path: from where, to where.
        expected: the checksum, as `verify_checksum` takes it; None where it is not known: then what has come whole is
            taken.

    Raises:
        UserError: the server cannot be reached or breaks off, the checksum differs (nothing is kept), the disk is full.
    """
    part = path.with_name(path.name + ".part")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with FileLock(path.with_name(f".{path.name}.lock")):
            if path.is_file() and (expected is None or _sum(path, expected) == expected):
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
    """See that a file is the one that is meant.

    Args:
        path: of the file.
        expected: its SHA-256, or "md5:" and its MD5, where that is what its publisher gives.
        name: what to call it.

    Raises:
        UserError: it is another; the sentence shows both sums.
    """
    found = _sum(path, expected)
    if found != expected:
        kind = "MD5" if expected.startswith(_MD5) else "SHA-256"
        raise UserError(
            f"{name} is not the file it should be: expected {kind} {expected.removeprefix(_MD5)}, "
            f"got {found.removeprefix(_MD5)}; get it anew from its source"
        )


_MD5 = "md5:"


def _sum(path: Path, like: str) -> str:
    """The checksum of a file, of the same kind as another."""
    return _MD5 + checksum(path, "md5") if like.startswith(_MD5) else checksum(path)


def _receive(url: str, part: Path) -> None:
    """Append to `part` what is missing of `url`, or write all of it where the server cannot resume."""
    have = part.stat().st_size if part.is_file() else 0
    request = urllib.request.Request(url, headers={"Range": f"bytes={have}-"} if have else {})
    try:
        response = urllib.request.urlopen(request, timeout=TIMEOUT)
    except urllib.error.HTTPError as error:
        if error.code == http.client.REQUESTED_RANGE_NOT_SATISFIABLE:
            _require_size(part, error.headers.get("Content-Range", ""), url)
            return  # nothing is missing: a checksum tells whether it is all right
        raise UserError(f"{url}: the server answers {error.code} {error.reason}; check data.url") from error
    except (OSError, http.client.HTTPException) as error:
        raise UserError(
            f"cannot reach {url} ({getattr(error, 'reason', error)}); to go on without a network, put {part.stem} and "
            "the other files of the corpus into a folder and set data.root=FOLDER"
        ) from error
    with response:
        resumed = response.status == http.client.PARTIAL_CONTENT
        with part.open("ab" if resumed else "wb") as file:
            for chunk in _chunks(response, url):
                file.write(chunk)


def _require_size(part: Path, content_range: str, url: str) -> None:
    """See that what has arrived is no longer than the file, as the server gives its size: "bytes */1234"."""
    size = content_range.rpartition("/")[2]
    if size.isdecimal() and part.stat().st_size != int(size):
        part.unlink()
        raise UserError(f"{url}: what had come of it is longer than the file, and is deleted now: start again")


def _chunks(response: http.client.HTTPResponse, url: str) -> Iterator[bytes]:
    """The body as it comes.

    Raises:
        UserError: it ends before it is whole.
    """
    reason: object = "the connection was closed early"
    try:
        while chunk := response.read1(1 << 16):
            yield chunk
        whole = not response.length
    except (OSError, http.client.HTTPException) as error:
        whole, reason = False, error
    if not whole:
        raise UserError(f"{url} broke off ({reason}); start again, and the download goes on from where it stopped")
