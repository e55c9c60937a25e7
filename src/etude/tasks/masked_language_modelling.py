"""Masked language modelling: hidden words from what stands around them (BERT: Devlin et al. 2019, section 3.1)."""

from collections.abc import Iterable
from typing import Any

import numpy as np
import numpy.typing as npt
from torch import nn

from etude.data.batch import Batch, Draw, Rows, make_batch
from etude.data.batching import Examples
from etude.data.splits import TokenSplit
from etude.data.store import TokenStore
from etude.data.tokenizer import EOS, PAD, UNK
from etude.tasks.perplexity import perplexity, sum_tokens
from etude.tasks.task import Lines, Task, check_side, side_of

MASK = UNK
"""Stands for a hidden token: text holds it only where `tokenizer.character_coverage` leaves characters out."""

_FIRST = max(PAD, EOS, UNK) + 1  # of the tokens that stand for text


class MaskedLanguageModelling(Task):
    """One side of the text, some of whose tokens are hidden; the model is to say them at their places.

    Of a line of n tokens `rate` n are chosen, rounded, and one at least; its end token never is. Which ones follows
    from the seed, the epoch and the row, so that neither resuming nor dividing a batch changes anything; all models are
    evaluated on the same ones, whatever their seeds. Measured by perplexity and accuracy at the chosen places.

    Args:
        side: of the corpus: "source" or "target".
        rate: the share of tokens that are chosen.
        masked, random: the shares of those that become MASK, or any other token; the rest stay as they are.

    Raises:
        ValueError: there is no such side, or these are no shares.
    """

    def __init__(self, *, side: str, rate: float, masked: float, random: float) -> None:
        check_side(side)
        if not 0 < rate <= 1:
            raise ValueError(f"task.rate must lie in (0, 1], not {rate}")
        if min(masked, random) < 0 or masked + random > 1:
            raise ValueError(f"task.masked={masked} and task.random={random} must be shares of one whole")
        self.side, self.rate, self.masked, self.random = side, rate, masked, random

    def examples(self, split: TokenSplit) -> Examples:
        """The lines with what is hidden of them."""
        return MaskedLines(split, self)

    def columns(self, source: float, target: float) -> tuple[float, float]:
        """A column a token of the side that is read, in the source and in what is predicted."""
        length = source if self.side == "source" else target
        return length, length

    def measure(self, model: nn.Module, batches: Iterable[Batch], store: TokenStore, split: str) -> dict[str, Any]:
        """Perplexity and accuracy, in per cent, of the chosen tokens."""
        nats, tokens, right = sum_tokens(model, batches)
        return {"perplexity": perplexity(nats, tokens), "accuracy": 100 * right / tokens, "tokens": tokens}


class MaskedLines(Lines):
    """See `MaskedLanguageModelling`."""

    def __init__(self, split: TokenSplit, task: MaskedLanguageModelling) -> None:
        lengths = side_of(split, task.side).lengths
        chosen = np.maximum(1, np.floor(task.rate * (lengths - 1) + 0.5)).astype(np.int64)
        super().__init__(split, task.side, source_lengths=lengths, target_lengths=lengths, target_counts=chosen)
        self.vocab_size, self.task = split.vocab_size, task

    def collate(self, rows: Rows, draw: Draw) -> Batch:
        """`source` holds the lines with what is hidden, `target_out` what was there, at the chosen places alone."""
        tokens = self.text.pad_rows(rows)
        columns = np.arange(tokens.shape[1])
        order = hash_places(draw, rows, columns, 0)
        order[columns >= self.text.lengths[rows][:, None] - 1] = np.iinfo(np.uint64).max  # the end, and padding
        chosen = order.argsort(axis=1, kind="stable").argsort(axis=1) < self.target_counts[rows][:, None]
        fate = hash_places(draw, rows, columns, 1) / 2.0**64
        others = (_FIRST + hash_places(draw, rows, columns, 2) % (self.vocab_size - _FIRST)).astype(np.int64)
        changed = np.where(fate < self.task.masked, MASK, others)
        shown = np.where(fate < self.task.masked + self.task.random, changed, tokens)
        target_out = np.where(chosen, tokens, PAD)
        return make_batch(np.where(chosen, shown, tokens), target_out, rows, np.full_like(tokens, PAD))


def hash_places(draw: Draw, rows: Rows, columns: Rows, purpose: int) -> npt.NDArray[np.uint64]:
    """Even random numbers (B, S) in 64 bits, each a function of the draw, the row, the column and a purpose."""
    seed, epoch = (0, 0) if draw is None else (draw[0], draw[1] + 1)  # no epoch is the draw of evaluations
    key = np.zeros((1, 1), dtype=np.uint64)
    for part in (np.array(seed), np.array(epoch), np.array(purpose), rows[:, None], columns[None, :]):
        key = _mix(key ^ part.astype(np.uint64))
    return key


def _mix(x: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint64]:
    """The next state and output of SplitMix64 (Steele, Lea and Flood 2014)."""
    x = x + np.uint64(0x9E3779B97F4A7C15)
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))
