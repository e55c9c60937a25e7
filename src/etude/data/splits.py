"""One split as numbers, written and read; and what becomes of awkward lines.

- blank: a pair with a side of no tokens is left out, in every split;
- long: a pair with a side of more than `max_tokens` is left out of training; in valid and test it stays, its source
  cut to `max_tokens`, as a translator reads it, and its target to its first `max_tokens + 1` tokens: it does not end
  there, so that EOS is not among them. Its text, which BLEU reads, stays whole.

So no sequence is longer than `max_tokens + 1` tokens, EOS or BOS counted.
"""

from array import array
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

import numpy as np
import numpy.typing as npt

from etude.data.corpus import Pair
from etude.data.tokenizer import EOS, PAD, Tokenizer
from etude.errors import UserError
from etude.files import write_text

CHUNK = 8192
"""Pairs tokenised at a time."""

SIDES = ("source", "target")


@dataclass(frozen=True, kw_only=True)
class Limits:
    """How many tokens a line may have, on either side, EOS not counted."""

    max_tokens: int


class TokenArray:
    """The tokens of one side, every line's end to end in one memory-mapped array; EOS is among them where a line ends.

    Attributes:
        lengths: tokens in each line
    """

    def __init__(self, path: Path) -> None:
        """Map the files that `write` made; nothing is read before it is used."""
        self._flat: npt.NDArray[np.integer] = np.asarray(np.load(f"{path}.pieces.npy", mmap_mode="r"))
        ends = np.load(f"{path}.ends.npy")
        self._starts = np.concatenate([[0], ends[:-1]])
        self.lengths = ends - self._starts

    @staticmethod
    def write(path: Path, flat: "array[int]", ends: "array[int]", vocab_size: int) -> None:
        """Write two files: the tokens, 2 bytes each where the vocabulary allows it, and where each line ends."""
        np.save(f"{path}.pieces.npy", np.asarray(flat, dtype=np.uint16 if vocab_size <= 1 << 16 else np.int32))
        np.save(f"{path}.ends.npy", np.asarray(ends, dtype=np.int64))

    def __len__(self) -> int:
        return len(self.lengths)

    def __getitem__(self, row: int) -> npt.NDArray[np.integer]:
        """The tokens of one line."""
        start = self._starts[row]
        return self._flat[start : start + self.lengths[row]]

    def padded(self, rows: npt.NDArray[np.integer]) -> npt.NDArray[np.int64]:
        """The lines `rows`, each filled up with PAD: (B, longest), int64."""
        lengths = self.lengths[rows][:, None]
        columns = np.arange(lengths.max())
        filled = np.full((len(rows), len(columns)), PAD, dtype=np.int64)
        held = columns < lengths
        filled[held] = self._flat[(self._starts[rows][:, None] + columns)[held]]
        return filled


class TokenSplit:
    """One split: the tokens of both sides, row by row.

    Attributes:
        folder, name: where it lies, and which one it is
        sources, targets: the two sides
        source_lengths, target_lengths: tokens in each row, EOS counted, (rows,) int64
    """

    def __init__(self, folder: Path, name: str) -> None:
        self.folder, self.name = folder, name
        self.sources, self.targets = (TokenArray(folder / f"{name}.{side}") for side in SIDES)
        self.source_lengths, self.target_lengths = self.sources.lengths, self.targets.lengths

    def __len__(self) -> int:
        return len(self.sources)

    def longest(self, side: str) -> tuple[int, str]:
        """The most tokens in a row of the source or target, and where that row stands."""
        lengths = self.source_lengths if side == "source" else self.target_lengths
        row = int(lengths.argmax())
        file = _text_file(self.folder, self.name, side)
        place = f"{file}, line {row + 1}," if file.is_file() else f"a {side} line of the {self.name} text"
        return int(lengths[row]), place


def read_text(folder: Path, name: str) -> tuple[list[str], list[str]]:
    """The source lines and the references of "valid" or "test", row by row."""
    source, target = (_text_file(folder, name, side).read_text(encoding="utf-8").split("\n")[:-1] for side in SIDES)
    return source, target


def write_split(folder: Path, name: str, pairs: Iterable[Pair], tokenizer: Tokenizer, limits: Limits) -> dict[str, int]:
    """Tokenise one split, and keep the text of valid and test beside the tokens.

    Returns:
        counts: "pairs" written; "blank" and "dropped" (too long) left out; "cut"; "source_tokens", "target_tokens"

    Raises:
        UserError: no pair is usable.
    """
    sides = {side: (array("i"), array("q")) for side in SIDES}  # the tokens of all lines, and where each line ends
    text: list[Pair] = []
    counts = {"pairs": 0, "blank": 0, "dropped": 0, "cut": 0}
    rest = iter(pairs)
    for chunk in iter(lambda: list(islice(rest, CHUNK)), []):
        encoded = (tokenizer.encode_all(lines) for lines in zip(*chunk, strict=True))
        for pair, source, target in zip(chunk, *encoded, strict=True):
            lengths = len(source), len(target)
            fate = _fate(name, max(lengths), min(lengths), limits)
            counts[fate] += 1
            if fate in ("pairs", "cut"):
                cut = [*source[: limits.max_tokens], EOS], [*target, EOS][: limits.max_tokens + 1]
                for (flat, ends), tokens in zip(sides.values(), cut, strict=True):
                    flat.extend(tokens)
                    ends.append(len(flat))
                if name != "train":
                    text.append(pair)
    counts["pairs"] += counts["cut"]
    if not counts["pairs"]:
        raise UserError(
            f"the {name} text has no usable pair: {counts['blank']} are blank, {counts['dropped']} longer than "
            f"budget.max_tokens={limits.max_tokens}; give more text or raise the limit"
        )
    for index, (side, (flat, ends)) in enumerate(sides.items()):
        TokenArray.write(folder / f"{name}.{side}", flat, ends, len(tokenizer))
        counts[f"{side}_tokens"] = len(flat)
        if name != "train":
            write_text(_text_file(folder, name, side), "".join(f"{pair[index]}\n" for pair in text))
    return counts


def describe_counts(counts: dict[str, int]) -> str:
    """The counts of `write_split` in words: "998 pairs (2 blank left out)"."""
    fates = {"blank": "blank left out", "dropped": "too long left out", "cut": "cut"}
    words = [f"{counts[fate]} {meaning}" for fate, meaning in fates.items() if counts[fate]]
    return f"{counts['pairs']} pairs" + (f" ({', '.join(words)})" if words else "")


def _fate(name: str, longest: int, shortest: int, limits: Limits) -> str:
    """Under which count a pair goes whose sides have so many tokens."""
    if shortest == 0:
        return "blank"
    if longest <= limits.max_tokens:
        return "pairs"
    return "dropped" if name == "train" else "cut"


def _text_file(folder: Path, name: str, side: str) -> Path:
    return folder / f"{name}.{side}.txt"
