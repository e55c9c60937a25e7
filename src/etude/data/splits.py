"""One split as numbers, written and read; and what becomes of awkward lines.

- blank: a pair with a side of no tokens is left out, in every split;
- long: a pair with a side of more than `max_tokens` is left out of training; in valid and test it stays, its source
  cut to `max_tokens`, as a translator reads it, and its target to its first `max_tokens + 1` tokens: it does not end
  there, so that EOS is not among them. Its text, which BLEU reads, stays whole.

So no sequence is longer than `max_tokens + 1` tokens, EOS or BOS counted.
"""

from collections import Counter
from collections.abc import Iterable
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from etude.data.corpus import Pair
from etude.data.token_array import TokenArray, TokenWriter
from etude.data.tokenize import Limits, tokenize
from etude.data.tokenizer import Tokenizer
from etude.errors import UserError
from etude.files import write_text

if TYPE_CHECKING:
    from etude.data.batch import Batch, Draw

__all__ = ["Limits", "TokenSplit", "describe_counts", "read_text", "write_split"]

SIDES = ("source", "target")


class TokenSplit:
    """One split: the tokens of both sides, row by row.

    Attributes:
        folder, name: where it lies, and which one it is
        vocab_size: V of its store; 0 where nobody said it
        sources, targets: the two sides
        source_lengths, target_lengths: tokens in each row, EOS counted, (rows,) int64
        target_counts: those of the target that the loss is of: all
    """

    def __init__(self, folder: Path, name: str, vocab_size: int = 0) -> None:
        self.folder, self.name, self.vocab_size = folder, name, vocab_size
        self.sources, self.targets = (TokenArray(folder / f"{name}.{side}") for side in SIDES)
        self.source_lengths, self.target_lengths = self.sources.lengths, self.targets.lengths
        self.target_counts = self.target_lengths

    def __len__(self) -> int:
        return len(self.sources)

    def collate(self, rows: npt.NDArray[np.int64], draw: "Draw") -> "Batch":
        """The batch of some rows, as translation has it: nothing in it is left to chance."""
        from etude.data.batch import make_batch  # which needs torch, and what prepares a text does not

        return make_batch(self.sources.padded(rows), self.targets.padded(rows), rows)

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
    text: list[Pair] = []
    fates: Counter[str] = Counter()
    with ExitStack() as opened:
        writers = [opened.enter_context(TokenWriter(folder / f"{name}.{side}", len(tokenizer))) for side in SIDES]
        for chunk in tokenize(pairs, name, tokenizer, limits):
            for writer, lines in zip(writers, chunk.sides, strict=True):
                writer.extend(*lines)
            fates += chunk.counts
            text += chunk.text
        counts = {fate: fates[fate] for fate in ("pairs", "blank", "dropped", "cut")}
        counts["pairs"] += counts["cut"]
        if not counts["pairs"]:
            raise UserError(
                f"the {name} text has no usable pair: {counts['blank']} are blank, {counts['dropped']} longer than "
                f"budget.max_tokens={limits.max_tokens}; give more text or raise the limit"
            )
    for index, (side, writer) in enumerate(zip(SIDES, writers, strict=True)):
        counts[f"{side}_tokens"] = writer.tokens
        if name != "train":
            write_text(_text_file(folder, name, side), "".join(f"{pair[index]}\n" for pair in text))
    return counts


def describe_counts(counts: dict[str, int]) -> str:
    """The counts of `write_split` in words: "998 pairs (2 blank left out)"."""
    fates = {"blank": "blank left out", "dropped": "too long left out", "cut": "cut"}
    words = [f"{counts[fate]} {meaning}" for fate, meaning in fates.items() if counts[fate]]
    return f"{counts['pairs']} pairs" + (f" ({', '.join(words)})" if words else "")


def _text_file(folder: Path, name: str, side: str) -> Path:
    return folder / f"{name}.{side}.txt"
