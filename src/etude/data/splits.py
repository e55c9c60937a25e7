"""One split as numbers, written and read; and what becomes of awkward lines.

- blank: a pair with a side of no pieces is left out, in every split;
- long: a pair with a side of more than `max_pieces` is left out of training; in valid and test it stays, and its
  pieces are cut to `max_pieces`, while its text, which BLEU reads, stays whole.

So no line has more than `max_pieces` pieces, and with EOS or BOS no sequence is longer than `max_pieces + 1`.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

import numpy as np
import numpy.typing as npt

from etude.data.corpus import Pair
from etude.data.pieces import Pieces, PiecesWriter
from etude.data.tokenizer import Tokenizer
from etude.errors import UserError
from etude.files import write_text

CHUNK = 8192
"""Pairs tokenised at a time."""

SIDES = ("source", "target")


@dataclass(frozen=True, kw_only=True)
class Limits:
    """How many pieces a line may have, on either side, EOS not counted."""

    max_pieces: int


class TokenSplit:
    """One split: the pieces of both sides, row by row.

    Attributes:
        sources, targets: the two sides
        source_lengths, target_lengths: pieces in each row with EOS counted, (rows,) int64
    """

    def __init__(self, folder: Path, name: str) -> None:
        self.sources, self.targets = (Pieces(folder / f"{name}.{side}") for side in SIDES)
        self.source_lengths, self.target_lengths = self.sources.lengths, self.targets.lengths

    def __len__(self) -> int:
        return len(self.sources)

    def source(self, row: int) -> npt.NDArray[np.integer]:
        """The source pieces of one row, without EOS."""
        return self.sources[row]

    def target(self, row: int) -> npt.NDArray[np.integer]:
        """The target pieces of one row, without BOS and EOS."""
        return self.targets[row]


def read_text(folder: Path, name: str) -> tuple[list[str], list[str]]:
    """The source lines and the references of "valid" or "test", row by row."""
    source, target = (_text_file(folder, name, side).read_text(encoding="utf-8").split("\n")[:-1] for side in SIDES)
    return source, target


def write_split(folder: Path, name: str, pairs: Iterable[Pair], tokenizer: Tokenizer, limits: Limits) -> dict[str, int]:
    """Tokenise one split, and keep the text of valid and test beside the pieces.

    Returns:
        counts: "pairs" written; "blank" and "dropped" (too long) left out; "cut"; "source_pieces", "target_pieces"

    Raises:
        UserError: no pair is usable.
    """
    sides = PiecesWriter(), PiecesWriter()
    text: list[Pair] = []
    counts = {"pairs": 0, "blank": 0, "dropped": 0, "cut": 0}
    rest = iter(pairs)
    for chunk in iter(lambda: list(islice(rest, CHUNK)), []):
        encoded = (tokenizer.encode_all(lines) for lines in zip(*chunk, strict=True))
        for pair, *both in zip(chunk, *encoded, strict=True):
            fate = _fate(name, max(map(len, both)), min(map(len, both)), limits)
            counts[fate] += 1
            if fate in ("pairs", "cut"):
                for side, pieces in zip(sides, both, strict=True):
                    side.append(pieces[: limits.max_pieces])
                if name != "train":
                    text.append(pair)
    counts["pairs"] += counts["cut"]
    if not counts["pairs"]:
        raise UserError(
            f"the {name} text has no usable pair: {counts['blank']} are blank, {counts['dropped']} longer than "
            f"budget.max_pieces={limits.max_pieces}; give more text or raise the limit"
        )
    for index, (side_name, side) in enumerate(zip(SIDES, sides, strict=True)):
        side.write(folder / f"{name}.{side_name}", len(tokenizer))
        counts[f"{side_name}_pieces"] = side.total
        if name != "train":
            write_text(_text_file(folder, name, side_name), "".join(f"{pair[index]}\n" for pair in text))
    return counts


def told(counts: dict[str, int]) -> str:
    """The counts of `write_split` in words: "998 pairs (2 blank left out)"."""
    fates = {"blank": "blank left out", "dropped": "too long left out", "cut": "cut"}
    words = [f"{counts[fate]} {meaning}" for fate, meaning in fates.items() if counts[fate]]
    return f"{counts['pairs']} pairs" + (f" ({', '.join(words)})" if words else "")


def _fate(name: str, longest: int, shortest: int, limits: Limits) -> str:
    """Under which count a pair goes whose sides have so many pieces."""
    if shortest == 0:
        return "blank"
    if longest <= limits.max_pieces:
        return "pairs"
    return "dropped" if name == "train" else "cut"


def _text_file(folder: Path, name: str, side: str) -> Path:
    return folder / f"{name}.{side}.txt"
