"""Write and read the tokens of one split: of either side all lines, concatenated, and where each of them ends.

<split>.<side>.pieces.npy   the tokens of all lines, each with its EOS; 2 bytes each where the vocabulary allows it
<split>.<side>.ends.npy     where each line ends
<split>.<side>.txt          of valid and test, the text

- blank: a pair with an empty side is left out of every split;
- long: a pair with a side of more than `max_tokens` is left out of training. In valid and test it is kept: the source
  is cut to `max_tokens`, as a translator reads it, and the target to its first `max_tokens + 1` tokens, without EOS.
  Its text, which BLEU reads, is not cut.

So no sequence is longer than `max_tokens + 1` tokens, including EOS or BOS.
"""

from collections.abc import Iterable, Sequence
from itertools import chain, islice
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from etude.data.corpus import Pair, first_reference
from etude.data.tokenizer import EOS, PAD, UNK, Tokenizer
from etude.errors import UserError
from etude.files import write_text

if TYPE_CHECKING:
    from etude.data.batch import Batch, Draw

SIDES = ("source", "target")

CHUNK_SIZE = 8192
"""Pairs tokenised at a time; the text is not held in memory."""


class TokenArray:
    """The tokens of one side, all lines concatenated in one memory-mapped array, each with its EOS.

    Attributes:
        flat: the tokens of all lines
        starts: where each line begins
        lengths: tokens in each line
    """

    def __init__(self, path: Path) -> None:
        """Memory-map the files that `TokenWriter` wrote; tokens are read when they are used."""
        self.flat: npt.NDArray[np.integer] = np.asarray(np.load(f"{path}.pieces.npy", mmap_mode="r"))
        ends = np.load(f"{path}.ends.npy")
        self.starts = np.concatenate([[0], ends[:-1]])
        self.lengths = ends - self.starts

    def __len__(self) -> int:
        return len(self.lengths)

    def __getitem__(self, row: int) -> npt.NDArray[np.integer]:
        """Return the tokens of one line."""
        start = self.starts[row]
        return self.flat[start : start + self.lengths[row]]

    def pad_rows(self, rows: npt.NDArray[np.integer]) -> npt.NDArray[np.int64]:
        """Return the lines `rows` padded with PAD to the longest: (B, longest), int64."""
        lengths = self.lengths[rows][:, None]
        columns = np.arange(lengths.max())
        padded = np.full((len(rows), len(columns)), PAD, dtype=np.int64)
        is_token = columns < lengths
        padded[is_token] = self.flat[(self.starts[rows][:, None] + columns)[is_token]]
        return padded


class TokenWriter:
    """Writes the files of a `TokenArray`, keeping only the lengths of the lines in memory.

    Attributes:
        tokens, unknown: number of tokens written so far, and how many of them are UNK
    """

    def __init__(self, path: Path, vocab_size: int) -> None:
        self.tokens = self.unknown = 0
        self._path = path
        self._dtype = np.dtype(np.uint16 if vocab_size <= 1 << 16 else np.int32)
        self._lengths: list[npt.NDArray[np.int64]] = []
        self._open = 0  # tokens of a line whose end is still to come

    def __enter__(self) -> "TokenWriter":
        self._file = Path(f"{self._path}.pieces.npy").open("wb")
        self._write_header()
        return self

    def extend(self, lines: Sequence[Sequence[int]]) -> None:
        """Append the tokens of some lines."""
        self._append(lines, np.ones(len(lines), dtype=bool))

    def extend_in_parts(self, parts: Sequence[Sequence[int]], ends: Sequence[bool]) -> None:
        """Append parts of lines; `ends` says of each part whether its line ends with it."""
        self._append(parts, np.array(ends, dtype=bool))

    def _append(self, parts: Sequence[Sequence[int]], ends: npt.NDArray[np.bool_]) -> None:
        totals = np.cumsum([self._open, *map(len, parts)])
        closed = totals[1:][ends]
        self._lengths.append(np.diff(closed, prepend=0))
        self._open = int(totals[-1] - (closed[-1] if len(closed) else 0))
        flat = np.fromiter(chain.from_iterable(parts), self._dtype)
        self._file.write(flat.tobytes())
        self.tokens += len(flat)
        self.unknown += int((flat == UNK).sum())

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        with self._file:
            if kind is None:
                self._file.seek(0)
                self._write_header()  # the header is padded: a longer number does not move the tokens
                np.save(f"{self._path}.ends.npy", np.cumsum(np.concatenate(self._lengths), dtype=np.int64))

    def _write_header(self) -> None:
        shape = {"descr": self._dtype.str, "fortran_order": False, "shape": (self.tokens,)}
        np.lib.format.write_array_header_1_0(self._file, shape)


class TokenSplit:
    """One split: the tokens of both sides, row by row.

    Attributes:
        folder, name: the folder of its files, and the name of the split
        vocab_size: V of its store; 0 if not given
        sources, targets: the two sides
        source_lengths, target_lengths: tokens in each row, EOS counted, (rows,) int64
        target_counts: target tokens that the loss is computed on: all
    """

    def __init__(self, folder: Path, name: str, vocab_size: int = 0) -> None:
        self.folder, self.name, self.vocab_size = folder, name, vocab_size
        self.sources, self.targets = (TokenArray(folder / f"{name}.{side}") for side in SIDES)
        self.source_lengths, self.target_lengths = self.sources.lengths, self.targets.lengths
        self.target_counts = self.target_lengths

    def __len__(self) -> int:
        return len(self.sources)

    def collate(self, rows: npt.NDArray[np.int64], draw: "Draw") -> "Batch":
        """Make the batch of some rows for translation, which draws nothing at random."""
        from etude.data.batch import make_batch  # imports torch, which preparing a text does without

        return make_batch(self.sources.pad_rows(rows), self.targets.pad_rows(rows), rows)

    def longest(self, side: str) -> tuple[int, str]:
        """Return the most tokens in a row of the source or target, and the location of that row."""
        lengths = self.source_lengths if side == "source" else self.target_lengths
        row = int(lengths.argmax())
        file = _text_file(self.folder, self.name, side)
        place = f"{file}, line {row + 1}," if file.is_file() else f"a {side} line of the {self.name} text"
        return int(lengths[row]), place


def read_text(folder: Path, name: str) -> tuple[list[str], list[str]]:
    """Read the source lines and the references of "valid" or "test", row by row."""
    source, target = (_text_file(folder, name, side).read_text(encoding="utf-8").split("\n")[:-1] for side in SIDES)
    return source, target


def write_split(
    folder: Path, name: str, pairs: Iterable[Pair], tokenizer: Tokenizer, max_tokens: int
) -> dict[str, int]:
    """Tokenise one split and write its tokens; of valid and test write the text too.

    Returns:
        counts: "pairs" written; "blank" and "dropped" (too long) left out; "cut"; "source_tokens", "target_tokens";
            "unknown_tokens" of both sides, UNK

    Raises:
        UserError: no pair is usable.
    """
    text: list[Pair] = []
    counts = dict.fromkeys(("pairs", "blank", "dropped", "cut"), 0)
    rest = iter(pairs)
    source, target = (TokenWriter(folder / f"{name}.{side}", len(tokenizer)) for side in SIDES)
    with source, target:
        while chunk := list(islice(rest, CHUNK_SIZE)):
            sources, targets = [], []
            lines = ([source for source, _ in chunk], [first_reference(target) for _, target in chunk])
            tokens = (tokenizer.source.encode_all(lines[0]), tokenizer.target.encode_all(lines[1]))
            for pair, ours, theirs in zip(chunk, *tokens, strict=True):
                is_long = max(len(ours), len(theirs)) > max_tokens
                if not (ours and theirs):
                    counts["blank"] += 1
                elif is_long and name == "train":
                    counts["dropped"] += 1
                else:
                    counts["pairs"] += 1
                    counts["cut"] += is_long
                    sources.append([*ours[:max_tokens], EOS])
                    targets.append([*theirs, EOS][: max_tokens + 1])
                    if name != "train":
                        text.append(pair)
            source.extend(sources)
            target.extend(targets)
    if not counts["pairs"]:
        raise UserError(
            f"the {name} text has no usable pair: {counts['blank']} are blank, {counts['dropped']} longer than "
            f"budget.max_tokens={max_tokens}; give more text or raise the limit"
        )
    if name != "train":
        for side, lines in zip(SIDES, zip(*text, strict=True), strict=True):
            write_text(_text_file(folder, name, side), "".join(f"{line}\n" for line in lines))
    counts["unknown_tokens"] = source.unknown + target.unknown
    return counts | {"source_tokens": source.tokens, "target_tokens": target.tokens}


def describe_counts(counts: dict[str, int]) -> str:
    """Format the counts of `write_split`: "998 pairs (2 blank left out, 3.1 % of tokens unknown)"."""
    outcomes = {"blank": "blank left out", "dropped": "too long left out", "cut": "cut"}
    words = [f"{counts[outcome]} {meaning}" for outcome, meaning in outcomes.items() if counts[outcome]]
    tokens = sum(counts[f"{side}_tokens"] for side in SIDES)
    if (unknown := 100 * counts.get("unknown_tokens", 0) / max(1, tokens)) >= 0.05:
        words.append(f"{unknown:.1f} % of tokens unknown")
    return f"{counts['pairs']} pairs" + (f" ({', '.join(words)})" if words else "")


def _text_file(folder: Path, name: str, side: str) -> Path:
    return folder / f"{name}.{side}.txt"
