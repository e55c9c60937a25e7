"""The files of a corpus: downloaded once, whoever asks, resumed where a download broke off, and known by a checksum."""

import http.client
import logging
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from filelock import FileLock

from etude.data.corpus import digest
from etude.errors import UserError
from etude.files import checksum, read_json, write_json

logger = logging.getLogger(__name__)

TIMEOUT = 30.0
"""Seconds without a byte after which the connection counts as lost."""


@dataclass(frozen=True, kw_only=True)
class SourceFile:
    """A file to download, or one in a folder of the user's.

    If its publisher gives no checksum, the SHA-256 of the file that was read takes its place: a different file is a
    different text.
    """

    url: str
    path: Path
    sum: str | None  # SHA-256, or "md5:" and an MD5; None if none is published
    owned: bool  # the user's own file, which is neither downloaded nor changed
    records: Path  # a folder that caches computed checksums, so that gigabytes are read once

    def identity(self) -> str:
        """Return the expected checksum of the file, or the computed one if none is known.

        Raises:
            UserError: the checksum must be computed and the file is missing.
        """
        if self.sum:
            return self.sum
        self._require_file()
        stat = self.path.stat()
        key = [str(self.path.resolve()), stat.st_size, stat.st_mtime_ns]
        record = self.records / f".{self.path.name}.{digest(key)}.sum"
        cached = read_json(record)
        if isinstance(cached, str):
            return cached
        computed = checksum(self.path)
        with suppress(UserError):  # caching is optional
            write_json(record, computed)
        return computed

    def fetch(self) -> None:
        """Download the file, unless it exists or is the user's.

        Raises:
            UserError: it cannot be downloaded.
        """
        if not self.owned:
            download(self.url, self.path, self.sum)

    def verify(self) -> Path:
        """Check the file against its checksum and return its path.

        Raises:
            UserError: it is missing, or a different file.
        """
        self._require_file()
        _verify(self.path, self.sum, name=str(self.path))
        return self.path

    def _require_file(self) -> None:
        if not self.path.is_file():
            raise UserError(
                f"there is no {self.path}; "
                + ("data.root must hold that file" if self.owned else "run `etude prepare` to download it")
            )


def download(url: str, path: Path, expected: str | None) -> None:
    """Download `url` to `path`, unless it exists. Safe to call from many processes: one of them downloads.

    A partial download is kept in `<name>.part`; the next call requests only the rest.

    Args:
        url, path: where from, where to.
        expected: the file's SHA-256, or "md5:" and its MD5; None if it is not known: any complete file is accepted.

    Raises:
        UserError: the server cannot be reached or breaks off, the checksum differs (nothing is kept), the disk is full.
    """
    part = path.with_name(path.name + ".part")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with FileLock(path.with_name(f".{path.name}.lock")):
            if path.is_file():
                with suppress(UserError):  # a damaged file is downloaded anew
                    return _verify(path, expected, name=url)
            logger.info("downloading %s", url)
            _receive(url, part)
            try:
                _verify(part, expected, name=url)
            except UserError:
                part.unlink()
                raise
            part.replace(path)
    except OSError as error:
        raise UserError(
            f"cannot write {path}: {error.strerror or error}; free some space or choose another place, then start again"
        ) from error


def _verify(path: Path, expected: str | None, name: str) -> None:
    """Check a file against its checksum, if one is known; `name` is its name in the error message."""
    algorithm, _, digits = (expected or "").rpartition(":")
    if expected and (found := checksum(path, algorithm or "sha256")) != digits:
        kind = "MD5" if algorithm else "SHA-256"
        raise UserError(
            f"{name} is not the file it should be: expected {kind} {digits}, got {found}; download it again"
        )


def _receive(url: str, part: Path) -> None:
    """Append the missing bytes of `url` to `part`, or write all of it if the server cannot resume."""
    have = part.stat().st_size if part.is_file() else 0
    try:
        request = urllib.request.Request(url, headers={"Range": f"bytes={have}-"} if have else {})
        response = urllib.request.urlopen(request, timeout=TIMEOUT)
    except urllib.error.HTTPError as error:
        if have and error.code == http.client.REQUESTED_RANGE_NOT_SATISFIABLE:
            part.unlink()  # it is complete, or of another file
            return _receive(url, part)
        raise UserError(f"{url}: the server answers {error.code} {error.reason}; check data.url") from error
    except (OSError, ValueError, http.client.HTTPException) as error:
        raise UserError(
            f"cannot reach {url} ({getattr(error, 'reason', error)}); to go on without a network, put {part.stem} and "
            "the other files of the corpus into a folder and set data.root=FOLDER"
        ) from error
    with response:
        resumed = response.status == http.client.PARTIAL_CONTENT
        with part.open("ab" if resumed else "wb") as file:
            for chunk in _read_chunks(response, url):
                file.write(chunk)


def _read_chunks(response: http.client.HTTPResponse, url: str) -> Iterator[bytes]:
    """Yield the body of a response as it arrives.

    Raises:
        UserError: it ends early.
    """
    reason: object = "the connection was closed early"
    try:
        while chunk := response.read1(1 << 16):
            yield chunk
        complete = not getattr(response, "length", None)  # a file: has none
    except (OSError, http.client.HTTPException) as error:
        complete, reason = False, error
    if not complete:
        raise UserError(f"{url} broke off ({reason}); start again, and the download goes on from where it stopped")
