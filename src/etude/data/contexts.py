"""Running text as tokens: one stream of documents, from which a model reads contexts of a fixed length.

<split>.text.pieces.npy   the tokens of all documents, each with its EOS
<split>.text.ends.npy     where each document ends
"""

import logging
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from etude.data.running_text import RunningText, read_pieces
from etude.data.splits import TokenArray, TokenWriter
from etude.data.tokenizer import BOS, EOS, PAD, Tokenizer
from etude.errors import UserError

if TYPE_CHECKING:
    from etude.data.batch import Batch, Draw, Rows

logger = logging.getLogger(__name__)

SLICE = 1000
"""Characters of a text that are learned from together."""

PIECES = 1000
"""Pieces tokenised at a time, some megabytes; the text is not held in memory."""


class Contexts:
    """The contexts of one split: the examples of a language model, each of at most `context` tokens.

    What is predicted is every token once. It is predicted from the tokens before it in its context, and a document
    begins with BOS in the place of the EOS before it.

    In training, contexts are as long as can be, and do not overlap. With `documents` "cross" the stream is a circle,
    cut at a place that depends on the seed and the epoch, so that every epoch has other contexts; only one of them is
    shorter. With "mask" every document is cut from its beginning, so that nothing before it is seen and its positions
    start from zero, in any model. In validation and test, the stream or each document is read from its beginning, and
    contexts are `stride` tokens apart: a context predicts the tokens that those before it have not predicted.

    Attributes:
        name, vocab_size: of the split, and V of its store.
        source_lengths, target_lengths, target_counts: see `etude.data.batching.Examples`.
    """

    def __init__(
        self, folder: Path, name: str, vocab_size: int, *, context: int, documents: str, stride: int | None
    ) -> None:
        """Open the files that `write_stream` wrote.

        Raises:
            UserError: the text is shorter than a context, or the stride longer.
        """
        self.name, self.vocab_size = name, vocab_size
        array = TokenArray(folder / f"{name}.text")
        self._flat = array.flat
        if len(self._flat) < context:
            raise UserError(
                f"the {name} text has {len(self._flat):,} tokens, fewer than a context of {context:,}: "
                "give more text, or lower budget.context"
            )
        if stride and stride > context:
            raise UserError(f"data.stride={stride} would leave out tokens between contexts of {context}: lower it")
        self._is_circle = name == "train" and documents == "cross"
        starts, lengths = (array.starts, array.lengths) if documents == "mask" else ([0], [len(self._flat)])
        apart = context if name == "train" or stride is None else stride
        self._starts, self._firsts, ends = _cut(np.array(starts), np.array(lengths), context, apart)
        self.source_lengths, self.target_lengths = np.ones_like(ends), ends - self._starts
        self.target_counts = ends - self._firsts

    def __len__(self) -> int:
        return len(self._starts)

    def longest(self, side: str) -> tuple[int, str]:
        """Return the most columns that a context takes as "source" or "target", and what it is."""
        lengths = self.source_lengths if side == "source" else self.target_lengths
        return int(lengths.max()), f"a context of the {self.name} text"

    def collate(self, rows: "Rows", draw: "Draw") -> "Batch":
        """Make a batch whose `target_out` holds the tokens that the contexts `rows` predict; the source is not read."""
        from etude.data.batch import make_batch  # imports torch, which preparing a text does without

        target_in, target_out = self.read(rows, draw)
        return make_batch(np.full((len(rows), 1), EOS), target_out, rows, target_in)

    def read(self, rows: "Rows", draw: "Draw") -> tuple["Rows", "Rows"]:
        """Return what the contexts `rows` read and what they predict, (B, T) each, padded with PAD."""
        size = len(self._flat)
        columns = np.arange(self.target_lengths[rows].max())
        places = self._starts[rows][:, None] + columns
        is_real = columns < self.target_lengths[rows][:, None]
        is_predicted = is_real & (places >= self._firsts[rows][:, None])
        turn = np.random.default_rng([*draw, size]).integers(size) if draw and self._is_circle else 0
        stream = self._flat[(places[:, :1] + turn + np.arange(-1, len(columns))) % size].astype(np.int64)  # (B, 1 + T)
        before, tokens = stream[:, :-1], stream[:, 1:]
        target_in = np.where(before == EOS, BOS, before)
        return np.where(is_real, target_in, PAD), np.where(is_predicted, tokens, PAD)


def _cut(
    starts: npt.NDArray[np.int64], lengths: npt.NDArray[np.int64], context: int, apart: int
) -> tuple[npt.NDArray[np.int64], ...]:
    """Cut texts into contexts whose beginnings are `apart` tokens from each other.

    Returns:
        Of each context where it starts, the first token that it predicts, and where it ends.
    """
    counts = 1 + np.maximum(0, -((context - lengths) // apart))
    number = np.arange(counts.sum()) - np.repeat(np.cumsum(counts) - counts, counts)
    begins, ends = np.repeat(starts, counts), np.repeat(starts + lengths, counts)
    first = begins + number * apart
    return first, np.where(number > 0, first + context - apart, first), np.minimum(first + context, ends)


def write_stream(folder: Path, text: RunningText, name: str, tokenizer: Tokenizer) -> dict[str, int]:
    """Tokenise a split of running text and write its tokens.

    Returns:
        counts: "documents", "bytes" of their text in UTF-8, "tokens" with EOS of each, "unknown_tokens" of them UNK

    Raises:
        UserError: from the text; there is none.
    """
    documents = size = 0
    pieces = read_pieces(text, name)
    with TokenWriter(folder / f"{name}.text", len(tokenizer)) as writer, _Progress(name, text.size(name)) as progress:
        while block := list(islice(pieces, PIECES)):
            ends = [is_last for _, is_last in block]
            encoded = tokenizer.encode_all([piece for piece, _ in block])
            writer.extend_in_parts(
                [[*tokens, EOS] if is_last else tokens for tokens, is_last in zip(encoded, ends, strict=True)], ends
            )
            read = sum(len(piece.encode()) for piece, _ in block)
            progress.advance(read)
            documents, size = documents + sum(ends), size + read
        if not documents:
            raise UserError(f"the {name} text is empty: give a text with words in it")
    return {"documents": documents, "bytes": size, "tokens": writer.tokens, "unknown_tokens": writer.unknown}


def lines_to_learn(text: RunningText, limit: int | None) -> Iterator[str]:
    """Yield lines of the training text from which subwords are learned.

    They are all lines if the text has at most `limit` slices of a thousand characters, else the whole words of so many
    slices, evenly spread. The selection depends on the text alone.
    """
    total = sum(_count_slices(piece) for piece, _ in read_pieces(text, "train")) if limit is not None else 0
    if limit is None or total <= limit:
        for piece, _ in read_pieces(text, "train"):
            yield from filter(None, piece.split("\n"))
        return
    logger.info("the subwords are learned from %d of %d thousand characters, evenly spread", limit, total)
    number = 0
    for piece, _ in read_pieces(text, "train"):
        for start in range(0, SLICE * _count_slices(piece), SLICE):
            if (number + 1) * limit // total > number * limit // total:
                part = piece[start : start + SLICE]
                whole = part.partition(" ")[2].rpartition(" ")[0] or part
                yield from filter(None, whole.split("\n"))
            number += 1


def _count_slices(piece: str) -> int:
    return max(1, len(piece) // SLICE)


def describe_stream(counts: dict[str, int]) -> str:
    """Format the counts of `write_stream`: "1,115,394 bytes in 1 document: 1,115,395 tokens"."""
    documents = f"{counts['documents']:,} document{'s' * (counts['documents'] != 1)}"
    unknown = 100 * counts["unknown_tokens"] / counts["tokens"]
    share = f" ({unknown:.1f} % of them unknown)" if unknown >= 0.05 else ""
    return f"{counts['bytes']:,} bytes in {documents}: {counts['tokens']:,} tokens{share}"


class _Progress:
    """A bar on the terminal that shows how much of a split has been tokenised; none elsewhere, or if it takes no time.

    Args:
        name: of the split.
        total: its bytes; None if they are not known.
    """

    def __init__(self, name: str, total: int | None) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn

        columns = (TextColumn("tokenising {task.description}"), BarColumn(), DownloadColumn(), TimeRemainingColumn())
        console = Console(stderr=True)
        self._bar = Progress(*columns, console=console, transient=True, disable=not console.is_terminal)
        self._task = self._bar.add_task(name, total=total)

    def __enter__(self) -> "_Progress":
        self._bar.start()
        return self

    def advance(self, size: int) -> None:
        """Show that `size` more bytes have been tokenised."""
        self._bar.advance(self._task, size)

    def __exit__(self, *_: object) -> None:
        self._bar.stop()
