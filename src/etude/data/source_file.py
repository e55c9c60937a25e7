"""A file that a corpus is made of: where it is to be had, and how one knows that it is the one that is meant."""

from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from etude.data.corpus import digest
from etude.data.download import download, verify_checksum
from etude.errors import UserError
from etude.files import checksum, read_json, write_json


@dataclass(frozen=True, kw_only=True)
class SourceFile:
    """A file to download, or one that lies in a folder of the user's.

    Where its publisher gives no checksum, it is pinned by what was read: its SHA-256 takes the place of the given one,
    and another file is another text.
    """

    url: str
    path: Path
    sum: str | None  # SHA-256, or an MD5 behind "md5:"; None where nobody has published one
    owned: bool  # the user's: neither downloaded nor changed
    records: Path  # a folder that remembers the sums of what was read, so that gigabytes are read once

    def identity(self) -> str:
        """The checksum that the file must have, or has.

        Raises:
            UserError: it must be read for that and is missing.
        """
        return self.sum or self._measured()

    def fetch(self) -> None:
        """Download it, unless it is there or the user's.

        Raises:
            UserError: it cannot be had.
        """
        if not self.owned:
            download(self.url, self.path, self.sum)

    def verified(self) -> Path:
        """Where it lies, once it has been held against its checksum.

        Raises:
            UserError: it is missing, or another file.
        """
        self._require()
        if self.sum:
            verify_checksum(self.path, self.sum, name=str(self.path))
        return self.path

    def _require(self) -> None:
        if not self.path.is_file():
            raise UserError(
                f"there is no {self.path}; "
                + ("data.root must hold that file" if self.owned else "run `etude prepare` to download it")
            )

    def _measured(self) -> str:
        """The SHA-256 of the file, remembered as long as neither its size nor its time changes."""
        self._require()
        stat = self.path.stat()
        met = [str(self.path.resolve()), stat.st_size, stat.st_mtime_ns]
        record = self.records / f".{self.path.name}.{digest(met)}.sum"
        known = read_json(record)
        if isinstance(known, str):
            return known
        found = checksum(self.path)
        with suppress(UserError):  # a record is a convenience
            write_json(record, found)
        return found
