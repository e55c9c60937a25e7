"""A file of a corpus: where to download it, and the checksum that identifies it."""

from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from etude.data.corpus import digest
from etude.data.download import download, verify_checksum
from etude.errors import UserError
from etude.files import checksum, read_json, write_json


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
        return self.sum or self._compute_checksum()

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
        if self.sum:
            verify_checksum(self.path, self.sum, name=str(self.path))
        return self.path

    def _require_file(self) -> None:
        if not self.path.is_file():
            raise UserError(
                f"there is no {self.path}; "
                + ("data.root must hold that file" if self.owned else "run `etude prepare` to download it")
            )

    def _compute_checksum(self) -> str:
        """Compute the SHA-256 of the file, cached until its size or modification time changes."""
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
