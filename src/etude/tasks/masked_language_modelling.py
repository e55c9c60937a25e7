"""Masked language modelling: predict hidden tokens from their context (BERT: Devlin et al. 2019, section 3.1)."""

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
from etude.tasks.task import Lines, Task, check_side, side_of, unknown_share

MASK = UNK
"""Replaces a hidden token. Text has this token where a character or, with `tokenizer=word`, a word is unknown."""

_FIRST = max(PAD, EOS, UNK) + 1  # the first token that encodes text


class MaskedLanguageModelling(Task):
    """Masked language modelling of one side of the text: the model predicts some tokens, most of which are hidden.

    Of a line of n tokens, `rate` n are chosen, rounded, at least one, and never the end token. The choice depends on
    the seed, the epoch and the row, so that neither resuming nor dividing a batch changes it. In evaluation it is the
    same for all models and seeds. Metrics: perplexity and accuracy at the chosen positions.

    Args:
        side: the side of the corpus, "source" or "target".
        rate: the share of tokens that are chosen.
        masked, random: the shares of chosen tokens that are replaced by MASK, or by a random token; the others are
            left unchanged.

    Raises:
        ValueError: `side` is neither, or a share is out of its range.
    """

    def __init__(self, *, side: str, rate: float, masked: float, random: float) -> None:
        check_side(side)
        if not 0 < rate <= 1:
            raise ValueError(f"task.rate must lie in (0, 1], not {rate}")
        if min(masked, random) < 0 or masked + random > 1:
            raise ValueError(f"task.masked={masked} and task.random={random} must be shares of one whole")
        self.side, self.rate, self.masked, self.random = side, rate, masked, random

    def examples(self, split: TokenSplit) -> Examples:
        """Return the lines with their hidden tokens."""
        return MaskedLines(split, self)

    def columns(self, source: float, target: float) -> tuple[float, float]:
        """Return one column per token of the side that is read, in source and target alike."""
        length = source if self.side == "source" else target
        return length, length

    def counted(self, target: float) -> float:
        """Return how many tokens of a line are chosen."""
        return max(1.0, self.rate * (target - 1))

    def measure(self, model: nn.Module, batches: Iterable[Batch], store: TokenStore, split: str) -> dict[str, Any]:
        """Compute perplexity and accuracy, in per cent, of the chosen tokens, with the share of unknown ones."""
        batches = list(batches)
        nats, tokens, right = sum_tokens(model, batches)
        signature = {"accuracy_signature": share} if (share := "".join(unknown_share(batches))) else {}
        return {"perplexity": perplexity(nats, tokens), "accuracy": 100 * right / tokens, **signature, "tokens": tokens}


class MaskedLines(Lines):
    """The examples of `MaskedLanguageModelling`."""

    def __init__(self, split: TokenSplit, task: MaskedLanguageModelling) -> None:
        lengths = side_of(split, task.side).lengths
        chosen = np.maximum(1, np.floor(task.rate * (lengths - 1) + 0.5)).astype(np.int64)
        super().__init__(split, task.side, source_lengths=lengths, target_lengths=lengths, target_counts=chosen)
        self.vocab_size, self.task = split.vocab_size, task

    def collate(self, rows: Rows, draw: Draw) -> Batch:
        """Make a batch whose `source` holds the lines with hidden tokens, and `target_out` only the chosen tokens."""
        tokens = self.text.pad_rows(rows)
        columns = np.arange(tokens.shape[1])
        order = hash_places(draw, rows, columns, 0)
        order[columns >= self.text.lengths[rows][:, None] - 1] = np.iinfo(np.uint64).max  # end tokens and padding last
        chosen = order.argsort(axis=1, kind="stable").argsort(axis=1) < self.target_counts[rows][:, None]
        uniform = hash_places(draw, rows, columns, 1) / 2.0**64
        random = (_FIRST + hash_places(draw, rows, columns, 2) % (self.vocab_size - _FIRST)).astype(np.int64)
        replaced = np.where(uniform < self.task.masked, MASK, random)
        shown = np.where(uniform < self.task.masked + self.task.random, replaced, tokens)
        target_out = np.where(chosen, tokens, PAD)
        return make_batch(np.where(chosen, shown, tokens), target_out, rows, np.full_like(tokens, PAD))


def hash_places(draw: Draw, rows: Rows, columns: Rows, purpose: int) -> npt.NDArray[np.uint64]:
    """Compute uniform random 64-bit numbers (B, S), each a hash of the draw, the row, the column and `purpose`."""
    seed, epoch = (0, 0) if draw is None else (draw[0], draw[1] + 1)  # epoch 0 is for evaluation
    key = np.zeros((1, 1), dtype=np.uint64)
    for part in (np.array(seed), np.array(epoch), np.array(purpose), rows[:, None], columns[None, :]):
        key = _mix(key ^ part.astype(np.uint64))
    return key


def _mix(x: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint64]:
    """Compute the output of SplitMix64 for the state `x` (Steele, Lea and Flood 2014)."""
    x = x + np.uint64(0x9E3779B97F4A7C15)
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))
