"""One split as numbers, written and read; and what becomes of awkward lines.

- blank: a pair with a side of no pieces is left out, in every split;
- long: a pair with a side of more than `max_tokens` is left out of training; in valid and test it stays, its source
  cut to `max_tokens`, as a translator reads it, and its target to its first `max_tokens + 1` tokens: it does not end
  there, so that EOS is not among them. Its text, which BLEU reads, stays whole.

So no sequence is longer than `max_tokens + 1` tokens, EOS or BOS counted.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from etude.data.corpus import Pair
from etude.data.token_array import TokenArray, TokenArrayWriter
from etude.data.tokenizer import EOS, Tokenizer
from etude.errors import UserError
from etude.files import write_text

CHUNK = 8192
"""Pairs tokenised at a time."""

SIDES = ("source", "target")


@dataclass(frozen=True, kw_only=True)
class Limits:
    """How many pieces a line may have, on either side, EOS not counted."""

    max_tokens: int


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
    """Tokenise one split, and keep the text of valid and test beside the pieces.

    Returns:
        counts: "pairs" written; "blank" and "dropped" (too long) left out; "cut"; "source_tokens", "target_tokens"

    Raises:
        UserError: no pair is usable.
    """
    sides = sources, targets = TokenArrayWriter(), TokenArrayWriter()
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
                sources.append([*source[: limits.max_tokens], EOS])
                targets.append([*target, EOS][: limits.max_tokens + 1])
                if name != "train":
                    text.append(pair)
    counts["pairs"] += counts["cut"]
    if not counts["pairs"]:
        raise UserError(
            f"the {name} text has no usable pair: {counts['blank']} are blank, {counts['dropped']} longer than "
            f"budget.max_tokens={limits.max_tokens}; give more text or raise the limit"
        )
    for index, (side_name, side) in enumerate(zip(SIDES, sides, strict=True)):
        side.write(folder / f"{name}.{side_name}", len(tokenizer))
        counts[f"{side_name}_tokens"] = side.total
        if name != "train":
            write_text(_text_file(folder, name, side_name), "".join(f"{pair[index]}\n" for pair in text))
    return counts


def describe_counts(counts: dict[str, int]) -> str:
    """The counts of `write_split` in words: "998 pairs (2 blank left out)"."""
    fates = {"blank": "blank left out", "dropped": "too long left out", "cut": "cut"}
    words = [f"{counts[fate]} {meaning}" for fate, meaning in fates.items() if counts[fate]]
    return f"{counts['pairs']} pairs" + (f" ({', '.join(words)})" if words else "")


def _fate(name: str, longest: int, shortest: int, limits: Limits) -> str:
    """Under which count a pair goes whose sides have so many pieces."""
    if shortest == 0:
        return "blank"
    if longest <= limits.max_tokens:
        return "pairs"
    return "dropped" if name == "train" else "cut"


def _text_file(folder: Path, name: str, side: str) -> Path:
    return folder / f"{name}.{side}.txt"
