"""`data=text`: running text of the user's files, or of the embedded grammar; see `conf/data/text.yaml`."""

import codecs
import hashlib
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from gzip import GzipFile
from itertools import chain, islice
from pathlib import Path
from random import Random
from typing import IO

from etude.data.corpus import SPLITS, digest
from etude.data.grammar import GrammarCorpus
from etude.data.lines import open_text
from etude.data.running_text import RunningText
from etude.errors import UserError
from etude.files import typed_path

_BLOCK = 1 << 20  # bytes read at a time
_SENTENCES = range(2, 13)  # of a document of the grammar
_GRAMMAR = 1  # the version of its documents; increase it when they change

Files = str | list | None
Span = tuple[int, int]


class TextFiles(RunningText):
    """Documents of the user's files; without files, documents of the embedded grammar.

    Args:
        files: a file, a folder, or a list of these; None: the grammar. What `valid` and `test` name is not trained on.
        valid, test: likewise; or two shares of `files`, where the part that is held out of it begins and ends.
        separator: what stands between two documents of a file; None: every file is one document.
        documents, stride: see `RunningText`.
        seed, sentences: of the grammar; sentences of each split.
        vocab_size, input_sentence_size: for the tokenizer; see `conf/tokenizer`.
    """

    def __init__(
        self,
        *,
        files: Files,
        valid: Files,
        test: Files,
        separator: str | None,
        documents: str,
        stride: int | None,
        seed: int,
        sentences: Mapping[str, int],
        vocab_size: int,
        input_sentence_size: int | None,
    ) -> None:
        super().__init__(documents=documents, stride=stride)
        if separator and re.fullmatch(r"(\\[nrt])+", separator):  # as it is typed: Hydra leaves "\n" as it is
            separator = separator.replace(r"\n", "\n").replace(r"\r", "\r").replace(r"\t", "\t")
        if separator == "":
            raise ValueError("data.separator is empty: say null, or what stands between two documents")
        self.vocab_size, self.input_sentence_size = vocab_size, input_sentence_size
        self._separator, self._seed, self._sentences = separator, seed, dict(sentences)
        self._files = {"train": files, "valid": valid, "test": test}
        self._shares = {split: share for split in SPLITS[1:] if (share := _share(split, self._files[split]))}
        (start, end), (first, last) = (self._shares.get(split, (0.0, 0.0)) for split in SPLITS[1:])
        if max(start, first) < min(end, last) and valid != test:  # the same twice is meant
            raise ValueError(
                f"data.valid={valid} and data.test={test} overlap, so that runs would be chosen by what they are judged"
                " on: give each a share of its own, such as [0.8,0.9] and [0.9,1]"
            )

    def text_fingerprint(self, splits: Sequence[str] = SPLITS) -> str:
        """Hash the content of the files, what is held out of them, and what separates documents."""
        if self._files["train"] is None:
            sizes = {split: self._sentences[split] for split in splits}
            return digest(["text", _GRAMMAR, self._grammar.fingerprint_of(splits), sizes])
        sums = {split: [_scan(file)[0] for file in self._paths(split)] for split in splits if split not in self._shares}
        return digest(["text", sums, self._shares, self._separator])

    def size(self, split: str) -> int | None:
        """Return the bytes of a split; None for the grammar."""
        if self._files["train"] is None:
            return None
        return sum(end - start for _, start, end in self._spans(split))

    def texts(self, split: str) -> Iterator[Iterable[str]]:
        """Yield the documents of a split, in the order of the names of their files."""
        if self._files["train"] is None:
            return self._documents_of_grammar(split)
        parts = (read_part(file, start, end) for file, start, end in self._spans(split) if start < end)
        return chain.from_iterable(divide(part, self._separator) if self._separator else [part] for part in parts)

    @property
    def _grammar(self) -> GrammarCorpus:
        sizes = {f"{split}_pairs": self._sentences[split] for split in SPLITS}
        return GrammarCorpus(seed=self._seed, vocab_size=self.vocab_size, **sizes)

    def _documents_of_grammar(self, split: str) -> Iterator[Iterable[str]]:
        """Yield documents of some English sentences each."""
        lengths, sentences = Random(f"{self._seed} {split}"), (source for source, _ in self._grammar.pairs(split))
        while sentence := next(sentences, ""):
            yield [" ".join([sentence, *islice(sentences, lengths.choice(_SENTENCES) - 1)])]

    def _paths(self, split: str) -> list[Path]:
        """Return the files of a split that has its own."""
        given = self._files[split]
        key = "data.files" if split == "train" else f"data.{split}"
        named = [given] if isinstance(given, str) else given
        if not named or not all(isinstance(name, str) for name in named):
            raise UserError(f"{key}={given} must name a file or a folder, or a list of them")
        found = [file for name in named for file in _find_files(key, typed_path(name))]
        if split != "train":
            return found
        own = [one for one in SPLITS[1:] if one not in self._shares and self._files[one] is not None]
        held_out = {file.resolve() for one in own for file in self._paths(one)}  # such as valid.txt in the same folder
        kept = [file for file in found if file.resolve() not in held_out]
        if not kept:
            raise UserError(
                f"{key}={given}: data.valid and data.test hold all of it out: name further files to train on"
            )
        return kept

    def _spans(self, split: str) -> Iterator[tuple[Path, int, int]]:
        """Yield the files of a split, and from where to where each of them belongs to it, in bytes."""
        owner = "train" if split in self._shares else split
        sizes = [(file, _scan(file)[1]) for file in self._paths(owner)]
        total = sum(size for _, size in sizes)
        for start, end in self._parts(split, total):
            first = 0
            for file, size in sizes:
                if max(start, first) < min(end, first + size):
                    yield file, max(start, first) - first, min(end, first + size) - first
                first += size

    def _parts(self, split: str, total: int) -> list[Span]:
        """Return the parts of the `total` bytes of its files that belong to a split."""
        held_out = {name: (int(total * start), int(total * end)) for name, (start, end) in self._shares.items()}
        if split != "train":
            return [held_out.get(split, (0, total))]
        kept, first = [], 0
        for start, end in sorted(held_out.values()):
            kept.append((first, start))
            first = max(first, end)
        return [(start, end) for start, end in [*kept, (first, total)] if start < end]


def _share(split: str, given: Files) -> tuple[float, float] | None:
    """Return the shares where what is held out for a split begins and ends; None if it has files of its own."""
    if not (isinstance(given, list) and given and all(type(one) in (int, float) for one in given)):
        return None
    if len(given) != 2 or not 0 <= given[0] < given[1] <= 1:
        raise ValueError(
            f"data.{split}={given}: name files, or say from which share of data.files to which, such as [0.9,0.95]"
        )
    return given[0], given[1]


def _find_files(key: str, place: Path) -> list[Path]:
    """Return the file at `place`, or all files in the folder there, except hidden ones."""
    if not place.is_dir():
        return [place]
    found = sorted(file for file in place.rglob("*") if file.is_file())
    shown = [file for file in found if not any(part.startswith(".") for part in file.relative_to(place).parts)]
    if not shown:
        raise UserError(f"{key}: there is no file in the folder {place}")
    return shown


def _scan(file: Path) -> tuple[str, int]:
    """Return the SHA-256 and the size of the content of a file, unpacked if it is gzipped.

    Raises:
        UserError: it is missing, unreadable or empty.
    """
    state = file.stat() if file.is_file() else None
    return _scan_again(file, state and (state.st_size, state.st_mtime_ns))


@cache
def _scan_again(file: Path, state: Span | None) -> tuple[str, int]:
    """Scan a file that was changed, which its `state` shows."""
    found, size, of_windows = hashlib.sha256(), 0, False
    with open_text(file) as content:
        while raw := content.read(_BLOCK):
            found.update(raw)
            size += len(raw)
            of_windows |= b"\r\n" in raw
    if of_windows:  # it was another text until \r\n was read as \n
        found.update(b"\n")
    if not size:
        raise UserError(f"{file} is empty: give a file of text")
    return found.hexdigest(), size


def read_part(file: Path, start: int, end: int) -> Iterator[str]:
    """Yield the text of a file from byte `start` to byte `end`; a character belongs to where its first byte is.

    A line that ends as on Windows, with \\r\\n, ends with \\n.

    Raises:
        UserError: the file is missing or unreadable, or not UTF-8; the message names the byte.
    """
    decoder, place, held_back = codecs.getincrementaldecoder("utf-8")(), start, ""
    with open_text(file) as content:
        for place, raw in _read_span(content, start, end):
            held = len(decoder.getstate()[0])
            try:
                text = decoder.decode(raw)
            except UnicodeDecodeError as error:
                raise _no_text(file, place - held + error.start, error.object[error.start]) from error
            if "\0" in text:
                raise _no_text(file, place - held + len(text.partition("\0")[0].encode()), 0)
            text = held_back + (text.removeprefix("\ufeff") if place == 0 else text)
            held_back = "\r" * text.endswith("\r")  # until it is known whether a \n follows
            yield text.removesuffix("\r").replace("\r\n", "\n")
            place += len(raw)
        if held_back:
            content.seek(end)
            yield held_back * (content.read(1) != b"\n")
    if left := decoder.getstate()[0]:
        raise _no_text(file, place - len(left), left[0])


def _read_span(content: IO[bytes] | GzipFile, start: int, end: int) -> Iterator[tuple[int, bytes]]:
    """Yield the bytes from `start` to `end`, and where they stand, but whole characters: whose first byte is there."""
    content.seek(start)
    first = content.read(min(_BLOCK, end - start))
    kept = first[_count_inner(first) :] if start else first
    if not kept:
        return
    yield start + len(first) - len(kept), kept
    for place in range(start + len(first), end, _BLOCK):
        yield place, content.read(min(_BLOCK, end - place))
    after = content.read(3)
    yield end, after[: _count_inner(after)]


def _count_inner(raw: bytes) -> int:
    """Count the bytes at the beginning, at most three, that are inside of a character."""
    return len(re.match(rb"[\x80-\xbf]{0,3}", raw)[0])  # type: ignore[index]


def _no_text(file: Path, place: int, byte: int) -> UserError:
    return UserError(f"{file}: byte {byte:#04x} at offset {place} is not UTF-8: this is no text, or save it as UTF-8")


def divide(parts: Iterable[str], separator: str) -> Iterator[Iterable[str]]:
    """Divide a text, given in parts, at every separator; yield what stands between them, each in parts."""
    rest, document = "", list[str]()
    for part in parts:
        *ended, rest = (rest + part).split(separator)
        for text in ended:
            yield [*document, text]
            document = []
        keep = min(len(rest), len(separator) - 1)  # the last characters may be the beginning of a separator
        document.append(rest[: len(rest) - keep])
        rest = rest[len(rest) - keep :]
    yield [*document, rest]
