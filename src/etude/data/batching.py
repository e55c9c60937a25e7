"""Batches that hold a budget of tokens, and whose contents are a function of (seed, number) alone (section 5.1)."""

from collections.abc import Iterator
from dataclasses import replace
from itertools import count
from typing import Protocol

import numpy as np
import torch
from torch.utils.data import IterableDataset

from etude.data.batch import EVALUATION, Batch, Draw, Rows
from etude.data.epochs import Epochs, cut
from etude.data.tokenizer import PAD
from etude.errors import UserError

__all__ = ["Batch", "BatchStream", "Examples", "check_budget", "evaluation_batches"]


class Examples(Protocol):
    """The rows of a split as a task sees them; a `TokenSplit` is that of translation."""

    source_lengths: Rows  # (rows,) columns that each takes in `source`
    target_lengths: Rows  # (rows,) and in `target_in` and `target_out`
    target_counts: Rows  # (rows,) of the latter, those that the loss is of

    def longest(self, side: str) -> tuple[int, str]:
        """The most columns that a row takes as "source" or "target", and where that row stands."""

    def collate(self, rows: Rows, draw: Draw) -> Batch:
        """The batch of some rows; what is left to chance in it is a function of `draw` and of each row."""


def collate_micro_batch(
    split: Examples, rows: Rows, micro_batch: int, micro_batches: int, draw: Draw = EVALUATION
) -> Batch:
    """Collate one of the `micro_batches` of a batch: every so many-th of its rows, so that lengths stay alike.

    A batch of fewer rows than micro-batches leaves some of these without a token. They hold a sentence whose
    translation is all padding: it costs nothing and moves nothing, but every process computes something and none waits
    in vain.
    """
    batch = split.collate(rows[micro_batch::micro_batches] if micro_batch < len(rows) else rows[:1], draw)
    if micro_batch >= len(rows):
        batch = replace(batch, target_out=torch.full_like(batch.target_out, PAD), target_tokens=0, rows=rows[:0])
    return replace(batch, step_tokens=int(split.target_counts[rows].sum()), micro_batch=micro_batch)


def evaluation_batches(split: Examples, *, source_tokens: int, target_tokens: int) -> list[Batch]:
    """Every row of a split exactly once, from short to long.

    Raises:
        UserError: a single row exceeds a budget.
    """
    check_budget(split, source_tokens=source_tokens, target_tokens=target_tokens)
    order = np.lexsort((split.source_lengths, split.target_lengths))
    cuts = cut(split.source_lengths[order], split.target_lengths[order], source_tokens, target_tokens)
    return [split.collate(rows, EVALUATION) for rows in np.split(order, cuts)]


def check_budget(split: Examples, *, source_tokens: int, target_tokens: int) -> None:
    """See to it that every row of a split fits a batch alone.

    Raises:
        UserError: one does not.
    """
    for side, tokens in (("source", source_tokens), ("target", target_tokens)):
        longest, place = split.longest(side)
        if longest > tokens:
            raise UserError(
                f"{place} has {longest} tokens, more than budget.{side}_tokens={tokens} can hold; set it to at least "
                f"{longest}, or budget.max_tokens to at most {tokens - 1}"
            )


class BatchStream(IterableDataset[Batch]):
    """The endless training batches of one process, from any step on.

    Step k trains on batch k of the epochs laid end to end, however many processes share it and in however many micro
    batches: process `rank` takes its own `micro_batches` of the batch's `world_size * micro_batches` parts, one after
    another. So resuming needs a step number and nothing else, and all processes take equally many parts.

    Args:
        split: the rows to draw from
        source_tokens, target_tokens, length_noise, seed: see `Epochs`
        start: the first step to yield
        limit: batches after which the first comes again; None for all the epochs there are
        rank, world_size: which process this is, and of how many
        micro_batches: parts that this process makes of its share

    Raises:
        UserError: a single row exceeds a budget.
    """

    def __init__(
        self,
        split: Examples,
        *,
        source_tokens: int,
        target_tokens: int,
        length_noise: float,
        seed: int,
        start: int,
        rank: int,
        world_size: int,
        micro_batches: int,
        limit: int | None = None,
    ) -> None:
        check_budget(split, source_tokens=source_tokens, target_tokens=target_tokens)
        self.split = split
        self.start, self.limit = start, limit
        self.micro_batches = world_size * micro_batches
        self.own = range(rank * micro_batches, (rank + 1) * micro_batches)
        self._epochs = Epochs(
            split.source_lengths,
            split.target_lengths,
            source_tokens=source_tokens,
            target_tokens=target_tokens,
            length_noise=length_noise,
            seed=seed,
        )
        self.seed = seed
        self._epoch, self._batches = -1, list[Rows]()

    @property
    def batches_per_epoch(self) -> int:
        """Batches that hold every row once."""
        return len(self._epochs)

    def __iter__(self) -> Iterator[Batch]:
        return (self.micro_batch(step, n) for step in count(self.start) for n in self.own)

    def micro_batch(self, step: int, n: int) -> Batch:
        """One micro-batch of the batch of a step."""
        epoch, index = divmod(step % self.limit if self.limit else step, len(self._epochs))
        if epoch != self._epoch:
            self._epoch, self._batches = epoch, self._epochs.take(epoch)
        return collate_micro_batch(self.split, self._batches[index], n, self.micro_batches, (self.seed, epoch))
