"""Batches that hold a budget of tokens, and whose contents are a function of (seed, number) alone (section 5.1)."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import count
from typing import Any

import numpy as np
import torch
from torch.utils.data import IterableDataset

from etude.data.epochs import Epochs, Rows, cut
from etude.data.splits import TokenSplit
from etude.data.tokenizer import BOS, PAD
from etude.errors import UserError


@dataclass(frozen=True)
class Batch:
    """Sentences to translate and their translations, padded to a rectangle on each side."""

    source: torch.Tensor  # (B, S) int64, tokens + EOS + PAD
    source_mask: torch.Tensor  # (B, S) bool, True where `source` is a token and not padding
    target_in: torch.Tensor  # (B, T) int64, BOS + tokens + PAD
    target_out: torch.Tensor  # (B, T) int64, what follows `target_in`: tokens + EOS (none in a line that was cut) + PAD
    target_tokens: int  # those of `target_out` that are not padding, EOS counted
    rows: Rows  # (B,) of the split, on the CPU
    step_tokens: int  # the target tokens of the whole batch that this may be a part of
    micro_batch: int = 0  # which part of it this is

    def to(self, device: torch.device | str) -> "Batch":
        """The same batch on `device`."""
        moved: dict[str, Any] = {
            name: one.to(device) for name, one in vars(self).items() if isinstance(one, torch.Tensor)
        }
        return replace(self, **moved)


def collate(split: TokenSplit, rows: Rows) -> Batch:
    """The batch of some rows of a split."""
    source, target_out = split.sources.padded(rows), split.targets.padded(rows)
    target_in = np.roll(target_out, 1, axis=1)
    target_in[:, 0] = BOS
    target_in[target_out == PAD] = PAD
    tokens = int(split.target_lengths[rows].sum())
    return Batch(
        source=torch.from_numpy(source),
        source_mask=torch.from_numpy(source != PAD),
        target_in=torch.from_numpy(target_in),
        target_out=torch.from_numpy(target_out),
        target_tokens=tokens,
        rows=rows,
        step_tokens=tokens,
    )


def collate_micro_batch(split: TokenSplit, rows: Rows, micro_batch: int, micro_batches: int) -> Batch:
    """Collate one of the `micro_batches` of a batch: every so many-th of its rows, so that lengths stay alike.

    A batch of fewer rows than micro-batches leaves some of these without a token. They hold a sentence whose
    translation is all padding: it costs nothing and moves nothing, but every process computes something and none waits
    in vain.
    """
    batch = collate(split, rows[micro_batch::micro_batches] if micro_batch < len(rows) else rows[:1])
    if micro_batch >= len(rows):
        batch = replace(batch, target_out=torch.full_like(batch.target_out, PAD), target_tokens=0, rows=rows[:0])
    return replace(batch, step_tokens=int(split.target_lengths[rows].sum()), micro_batch=micro_batch)


def evaluation_batches(split: TokenSplit, *, source_tokens: int, target_tokens: int) -> list[Batch]:
    """Every row of a split exactly once, from short to long.

    Raises:
        UserError: a single row exceeds a budget.
    """
    check_budget(split, source_tokens=source_tokens, target_tokens=target_tokens)
    order = np.lexsort((split.source_lengths, split.target_lengths))
    cuts = cut(split.source_lengths[order], split.target_lengths[order], source_tokens, target_tokens)
    return [collate(split, rows) for rows in np.split(order, cuts)]


def check_budget(split: TokenSplit, *, source_tokens: int, target_tokens: int) -> None:
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
        split: TokenSplit,
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
        return collate_micro_batch(self.split, self._batches[index], n, self.micro_batches)
