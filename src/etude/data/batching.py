"""Batches of a token budget, whose contents are a function of (seed, batch number) alone (section 5.1)."""

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
    """The rows of a split as a task reads them; for translation, a `TokenSplit`."""

    source_lengths: Rows  # (rows,) columns that each row takes in `source`
    target_lengths: Rows  # (rows,) and in `target_in` and `target_out`
    target_counts: Rows  # (rows,) target tokens that the loss is computed on

    def longest(self, side: str) -> tuple[int, str]:
        """Return the most columns that a row takes as "source" or "target", and the location of that row."""

    def collate(self, rows: Rows, draw: Draw) -> Batch:
        """Make the batch of some rows; its random choices are a function of `draw` and of each row."""


def collate_micro_batch(
    split: Examples, rows: Rows, micro_batch: int, micro_batches: int, draw: Draw = EVALUATION
) -> Batch:
    """Collate one micro-batch of a batch: every `micro_batches`-th row, so that lengths stay similar.

    If a batch has fewer rows than micro-batches, some of these have no token. They hold a sentence whose translation
    is all padding: its loss and gradient are zero, but every process computes something and none waits forever.
    """
    batch = split.collate(rows[micro_batch::micro_batches] if micro_batch < len(rows) else rows[:1], draw)
    if micro_batch >= len(rows):
        batch = replace(batch, target_out=torch.full_like(batch.target_out, PAD), target_tokens=0, rows=rows[:0])
    return replace(batch, step_tokens=int(split.target_counts[rows].sum()), micro_batch=micro_batch)


def evaluation_batches(split: Examples, *, source_tokens: int, target_tokens: int) -> list[Batch]:
    """Batch every row of a split exactly once, from short to long.

    Raises:
        UserError: a single row exceeds a budget.
    """
    check_budget(split, source_tokens=source_tokens, target_tokens=target_tokens)
    order = np.lexsort((split.source_lengths, split.target_lengths))
    cuts = cut(split.source_lengths[order], split.target_lengths[order], source_tokens, target_tokens)
    return [split.collate(rows, EVALUATION) for rows in np.split(order, cuts)]


def check_budget(split: Examples, *, source_tokens: int, target_tokens: int) -> None:
    """Check that every row of a split fits a batch on its own.

    Raises:
        UserError: one does not.
    """
    for side, tokens in (("source", source_tokens), ("target", target_tokens)):
        longest, place = split.longest(side)
        if longest > tokens:
            lower = "budget.context" if place.startswith("a context") else "budget.max_tokens"
            raise UserError(
                f"{place} has {longest} tokens, more than budget.{side}_tokens={tokens} can hold; set it to at least "
                f"{longest}, or lower {lower}"
            )


class BatchStream(IterableDataset[Batch]):
    """The endless training batches of one process, starting at any step.

    Step k trains on batch k of the concatenated epochs, however many processes and micro-batches share it: process
    `rank` takes its own `micro_batches` of the batch's `world_size * micro_batches` micro-batches, one after another.
    So resuming needs only a step number, and all processes take equally many micro-batches.

    Args:
        split: the rows to draw from
        source_tokens, target_tokens, length_noise, seed: see `Epochs`
        start: the first step to yield
        limit: number of batches after which the first one is repeated; None for no limit
        rank, world_size: the rank of this process, and the number of processes
        micro_batches: the number of micro-batches that this process takes per step

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
        self.local_micro_batches = range(rank * micro_batches, (rank + 1) * micro_batches)
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
        """The number of batches that hold every row once."""
        return len(self._epochs)

    def __iter__(self) -> Iterator[Batch]:
        return (self.micro_batch(step, n) for step in count(self.start) for n in self.local_micro_batches)

    def micro_batch(self, step: int, n: int) -> Batch:
        """Make micro-batch `n` of the batch of a step."""
        epoch, index = divmod(step % self.limit if self.limit else step, len(self._epochs))
        if epoch != self._epoch:
            self._epoch, self._batches = epoch, self._epochs.take(epoch)
        return collate_micro_batch(self.split, self._batches[index], n, self.micro_batches, (self.seed, epoch))
