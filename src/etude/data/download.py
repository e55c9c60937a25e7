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


def download(url: str, path: Path, sha256: str) -> None:
    """Bring `url` to `path`, unless it is there already. Many processes may ask at once; one of them downloads.

    What has arrived is kept in `<name>.part`; the next call asks the server for the rest alone.

    Raises:
        UserError: the server cannot be reached or breaks off, the checksum differs (nothing is kept), the disk is full.
    """
    part = path.with_name(path.name + ".part")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with FileLock(path.with_name(f".{path.name}.lock")):
            if path.is_file() and checksum(path) == sha256:
                return
            logger.info("downloading %s", url)
            _receive(url, part)
            try:
                verify_checksum(part, sha256, name=url)
            except UserError:
                part.unlink()
                raise
            part.replace(path)
    except OSError as error:
        raise UserError(
            f"cannot write {path}: {error.strerror or error}; free some space or choose another place, then start again"
        ) from error


def verify_checksum(path: Path, sha256: str, name: str) -> None:
    """See that a file is the one that is meant.

    Raises:
        UserError: it is another; the sentence calls it `name` and shows both sums.
    """
    found = checksum(path)
    if found != sha256:
        raise UserError(
            f"{name} is not the file it should be: expected SHA-256 {sha256}, got {found}; get it anew from its source"
        )


def _receive(url: str, part: Path) -> None:
    """Append to `part` what is missing of `url`, or write all of it where the server cannot resume."""
    have = part.stat().st_size if part.is_file() else 0
    request = urllib.request.Request(url, headers={"Range": f"bytes={have}-"} if have else {})
    try:
        response = urllib.request.urlopen(request, timeout=TIMEOUT)
    except urllib.error.HTTPError as error:
        if error.code == http.client.REQUESTED_RANGE_NOT_SATISFIABLE:
            return  # nothing is missing: the checksum tells whether it is all right
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
