"""Read text line by line, plain or gzipped; every error names the file and the line."""

import gzip
import hashlib
import re
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import zip_longest
from pathlib import Path
from typing import IO
from xml.sax.saxutils import unescape

from etude.data.corpus import Pair
from etude.errors import UserError, did_you_mean

# SGM is not XML, since a bare & occurs in it; so its tags are searched for, as sacreBLEU does.
_TAG = re.compile(
    r'<doc\b[^>]*?\bdocid="([^"]*)"|<seg\b[^>]*?\bid="?([^">\s]+)[^>]*>((?:(?!</?seg\b).)*)(</seg>)?',
    re.IGNORECASE | re.DOTALL,
)
_QUOTES = {"&quot;": '"', "&apos;": "'"}

Segment = tuple[tuple[str, str], str]
"""((document id, segment id), text)."""


def read_lines(path: Path) -> Iterator[str]:
    """Yield the lines of a UTF-8 file, plain or gzipped (detected by its first bytes), without line endings.

    Only a line feed ends a line, so that two parallel files stay aligned; other Unicode line breaks become spaces.
    A byte-order mark is dropped.

    Raises:
        UserError: the file is missing, unreadable, empty, or not UTF-8 (with the line number).
    """
    number = 0
    with open_text(path) as file:
        for number, raw in enumerate(file, start=1):
            try:
                line = raw.decode("utf-8")
            except UnicodeDecodeError as error:
                raise UserError(
                    f"{path}, line {number}: byte {raw[error.start]:#04x} is not valid UTF-8; save the file as UTF-8"
                ) from error
            yield " ".join((line.removeprefix("\ufeff") if number == 1 else line).splitlines())
    if number == 0:
        raise UserError(f"{path} is empty; give a file with one sentence a line")


def parallel_lines(source: Path, target: Path, *further: Path) -> Iterator[Pair]:
    """Yield the pairs of files that are translations of each other line by line.

    Of several targets each is a reference of the line, with tabs between them; a tab within a line becomes a space.

    Raises:
        UserError: as `read_lines`; or the files differ in their number of lines (both are named).
    """
    if further:
        for (left, right), (_, more) in zip(
            parallel_lines(source, target), parallel_lines(source, *further), strict=True
        ):
            yield left, f"{right}\t{more}"
        return
    sources, targets = read_lines(source), read_lines(target)
    for number, (left, right) in enumerate(zip_longest(sources, targets), start=1):
        if left is None or right is None:
            longer = number + sum(1 for _ in (targets if left is None else sources))
            counts = (number - 1, longer) if left is None else (longer, number - 1)
            raise UserError(
                f"{source} has {counts[0]} lines but {target} has {counts[1]}; "
                "line k of one must be the translation of line k of the other"
            )
        yield left.strip(), right.strip().replace("\t", " ")


def tsv_lines(file: Path, columns: Sequence[int | str] = (1, 2)) -> Iterator[Pair]:
    """Yield the pairs of a TSV file; an empty line is a blank pair.

    Args:
        file: a TSV; if a column is given by name, its first line is a header and no pair.
        columns: those of source and target, by number from 1 on or by name; further ones hold further references.

    Raises:
        UserError: as `read_lines`; or a line has too few columns, or not as many as the first line; or no column has
            the name.
    """
    header, width, found = any(isinstance(column, str) for column in columns), 0, [0, 1]
    for number, line in enumerate(read_lines(file), start=1):
        if not line.strip():
            yield "", ""
            continue
        cells = line.split("\t")
        if first := not width:
            width = len(cells)
            found = [_index(column, cells, file) for column in columns]
        least = 1 + max(found)
        if len(cells) != width or width < least:
            raise UserError(
                f"{file}, line {number}: {len(cells)} column{'s' * (len(cells) != 1)} where "
                f"{width if width >= least else f'at least {least}'} are due; write source, tab, target on each line"
            )
        if not (first and header):
            source, *targets = (cells[index].strip() for index in found)
            yield source, "\t".join(targets)


def _index(column: int | str, cells: Sequence[str], file: Path) -> int:
    """Return the index of a column that is given by its number or by its name in the header, `cells`."""
    if isinstance(column, int):
        return column - 1
    names = [cell.strip() for cell in cells]
    if column not in names:
        raise UserError(f"data.columns: the first line of {file} has no column {column}; {did_you_mean(column, names)}")
    return names.index(column)


def sgm_pairs(source: Path, target: Path) -> Iterator[Pair]:
    """Yield the pairs of two files in WMT's SGM format, whose segments are translations of each other one by one.

    Raises:
        UserError: a file is missing or not SGM; or the files differ in a segment (both are named).
    """
    sides = read_segments(source), read_segments(target)
    for number, (left, right) in enumerate(zip_longest(*sides), start=1):
        if left is None or right is None or left[0] != right[0]:
            names = ["nothing" if side is None else f"segment {side[0][1]} of {side[0][0]!r}" for side in (left, right)]
            raise UserError(f"{source} has {names[0]} where {target} has {names[1]} (the {number}th of each)")
        yield left[1], right[1]


def read_segments(path: Path) -> list[Segment]:
    """Read the segments of an SGM file, in order; white space of any length becomes one space.

    Raises:
        UserError: as `read_lines`; there is no segment; or one is not closed (with the line number).
    """
    text = "\n".join(read_lines(path))
    segments: list[Segment] = []
    document = ""
    for tag in _TAG.finditer(text):
        if tag[1] is not None:
            document = tag[1]
        elif tag[4] is None:
            raise UserError(f"{path}, line {text.count(chr(10), 0, tag.start()) + 1}: a segment is not closed")
        else:
            segments.append(((document, tag[2]), " ".join(unescape(tag[3], _QUOTES).split())))
    if not segments:
        raise UserError(f'{path} has no segment: it should hold lines such as <seg id="1">A sentence.</seg>')
    return segments


def content_sum(path: Path) -> str:
    """Compute the SHA-256 of a file's content; the same text has the same sum, gzipped or not.

    Raises:
        UserError: the file is missing or unreadable.
    """
    with open_text(path) as file:
        return hashlib.file_digest(file, "sha256").hexdigest()  # type: ignore[arg-type]  # GzipFile reads as well


@contextmanager
def open_text(path: Path) -> Iterator[IO[bytes] | gzip.GzipFile]:
    """Open a file for reading bytes, unpacked if it is gzipped.

    Raises:
        UserError: the file is missing or unreadable, also while it is being read in the context.
    """
    try:
        with path.open("rb") as file:
            if file.peek(2)[:2] == b"\x1f\x8b":
                with gzip.open(file) as unpacked:
                    yield unpacked
            else:
                yield file
    except FileNotFoundError as error:
        folder = path.parent
        if not folder.is_dir():
            raise UserError(f"there is no file {path}, nor a folder {folder}") from error
        files = [one.name for one in folder.iterdir() if one.is_file() and not one.name.startswith(".")]
        raise UserError(f"there is no file {path}; {did_you_mean(path.name, files)}") from error
    except IsADirectoryError as error:
        raise UserError(f"{path} is a folder: name a file in it") from error
    except (OSError, EOFError, zlib.error) as error:
        raise UserError(f"cannot read {path}: {error}") from error
