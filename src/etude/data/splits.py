"""Write and read the tokens of one split.

- blank: a pair with an empty side is left out of every split;
- long: a pair with a side of more than `max_tokens` is left out of training. In valid and test it is kept: the source
  is cut to `max_tokens`, as a translator reads it, and the target to its first `max_tokens + 1` tokens, without EOS.
  Its text, which BLEU reads, is not cut.

So no sequence is longer than `max_tokens + 1` tokens, including EOS or BOS.
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
from etude.data.tokenizer import UNK, Tokenizer
from etude.errors import UserError
from etude.files import write_text

if TYPE_CHECKING:
    from etude.data.batch import Batch, Draw

__all__ = ["Limits", "TokenSplit", "describe_counts", "read_text", "write_split"]

SIDES = ("source", "target")


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


def write_split(folder: Path, name: str, pairs: Iterable[Pair], tokenizer: Tokenizer, limits: Limits) -> dict[str, int]:
    """Tokenise one split and write its tokens; of valid and test write the text too.

    Returns:
        counts: "pairs" written; "blank" and "dropped" (too long) left out; "cut"; "source_tokens", "target_tokens";
            "unknown_tokens" of both sides, UNK

    Raises:
        UserError: no pair is usable.
    """
    text: list[Pair] = []
    outcomes: Counter[str] = Counter()
    unknown = 0
    with ExitStack() as opened:
        writers = [opened.enter_context(TokenWriter(folder / f"{name}.{side}", len(tokenizer))) for side in SIDES]
        for chunk in tokenize(pairs, name, tokenizer, limits):
            for writer, lines in zip(writers, chunk.sides, strict=True):
                writer.extend(*lines)
                unknown += int((lines[0] == UNK).sum())
            outcomes += chunk.counts
            text += chunk.text
        counts = {outcome: outcomes[outcome] for outcome in ("pairs", "blank", "dropped", "cut")}
        counts["pairs"] += counts["cut"]
        counts["unknown_tokens"] = unknown
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
    """Format the counts of `write_split`: "998 pairs (2 blank left out, 3.1 % of tokens unknown)"."""
    outcomes = {"blank": "blank left out", "dropped": "too long left out", "cut": "cut"}
    words = [f"{counts[outcome]} {meaning}" for outcome, meaning in outcomes.items() if counts[outcome]]
    tokens = sum(counts.get(f"{side}_tokens", 0) for side in SIDES)
    if (unknown := 100 * counts.get("unknown_tokens", 0) / max(1, tokens)) >= 0.05:
        words.append(f"{unknown:.1f} % of tokens unknown")
    return f"{counts['pairs']} pairs" + (f" ({', '.join(words)})" if words else "")


def _text_file(folder: Path, name: str, side: str) -> Path:
    return folder / f"{name}.{side}.txt"
