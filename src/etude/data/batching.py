"""Batches that hold a budget of tokens, and whose contents are a function of (seed, number) alone (section 5.1).

Rows of like length go together, so that little of a batch is padding. They do so with some noise: batches in which all
sentences have one length and one kind mislead the optimizer from step to step. Which lengths meet depends on the seed;
which rows of those lengths, and in which order the batches come, changes with the epoch. An epoch therefore always has
the same number of batches, and any batch can be made again without those before it.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial
from itertools import count
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch.utils.data import IterableDataset

from etude.data.splits import TokenSplit
from etude.data.tokenizer import BOS, PAD
from etude.errors import UserError

Rows = npt.NDArray[np.int64]


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


def token_batches(
    source_lengths: Rows,
    target_lengths: Rows,
    *,
    source_tokens: int,
    target_tokens: int,
    length_noise: float,
    seed: int,
    epoch: int,
) -> list[Rows]:
    """The rows of every batch of an epoch; each row is in exactly one.

    Args:
        source_lengths, target_lengths: tokens in each row, EOS counted, (rows,)
        source_tokens, target_tokens: no batch's rows times its longest line exceeds these, on either side
        length_noise: target lengths that differ by up to so many tokens are not told apart
        seed, epoch: what the order depends on; both at least 0
    """
    generator = np.random.default_rng([seed, epoch])
    shuffled = generator.permutation(len(source_lengths))
    rows = _place_rows(shuffled, source_lengths, target_lengths, length_noise, seed)
    batches = _pack(rows, source_lengths, target_lengths, source_tokens, target_tokens)
    return [batches[index] for index in generator.permutation(len(batches))]


def evaluation_batches(split: TokenSplit, *, source_tokens: int, target_tokens: int) -> list[Batch]:
    """Every row of a split exactly once, from short to long.

    Raises:
        UserError: a single row exceeds a budget.
    """
    check_budget(split, source_tokens=source_tokens, target_tokens=target_tokens)
    order = np.lexsort((split.source_lengths, split.target_lengths))
    batches = _pack(order, split.source_lengths, split.target_lengths, source_tokens, target_tokens)
    return [collate(split, batch) for batch in batches]


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
        source_tokens, target_tokens, length_noise, seed: see `token_batches`
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
        self._rows_of_epoch = partial(
            token_batches,
            split.source_lengths,
            split.target_lengths,
            source_tokens=source_tokens,
            target_tokens=target_tokens,
            length_noise=length_noise,
            seed=seed,
        )
        self._epoch, self._batches = 0, self._rows_of_epoch(epoch=0)

    @property
    def batches_per_epoch(self) -> int:
        """Batches that hold every row once."""
        return len(self._batches)

    def __iter__(self) -> Iterator[Batch]:
        return (self.micro_batch(step, n) for step in count(self.start) for n in self.own)

    def micro_batch(self, step: int, n: int) -> Batch:
        """One micro-batch of the batch of a step."""
        epoch, index = divmod(step % self.limit if self.limit else step, len(self._batches))
        if epoch != self._epoch:
            self._epoch, self._batches = epoch, self._rows_of_epoch(epoch=epoch)
        return collate_micro_batch(self.split, self._batches[index], n, self.micro_batches)


def _place_rows(shuffled: Rows, source_lengths: Rows, target_lengths: Rows, length_noise: float, seed: int) -> Rows:
    """The rows from short to long.

    Sorted by target length, give or take the noise; within that by source length, upwards and downwards in turn, so
    that the source lengths do not jump where the target length changes. Places are made once for a seed, each for a row
    of certain lengths; whichever rows have those lengths take them, in the order of `shuffled`.
    """
    noise = np.random.default_rng(seed).uniform(0, length_noise, len(target_lengths))
    lengths = np.floor(target_lengths + noise)
    places = np.lexsort((np.where(lengths % 2, -source_lengths, source_lengths), lengths))
    placed = np.empty_like(places)
    placed[_by_lengths(places, source_lengths, target_lengths)] = shuffled[
        _by_lengths(shuffled, source_lengths, target_lengths)
    ]
    return placed


def _by_lengths(rows: Rows, source_lengths: Rows, target_lengths: Rows) -> Rows:
    """Indices that sort `rows` by both lengths and leave those that agree in their order."""
    return np.lexsort((target_lengths[rows], source_lengths[rows]))


def _pack(rows: Rows, source_lengths: Rows, target_lengths: Rows, source_tokens: int, target_tokens: int) -> list[Rows]:
    """Cut rows, in the order given, where a budget is full; each row fits it alone."""
    sources, targets = source_lengths[rows], target_lengths[rows]
    cuts = []
    first = longest_source = longest_target = 0
    for place, (source, target) in enumerate(zip(sources.tolist(), targets.tolist(), strict=True)):
        longest_source, longest_target = max(longest_source, source), max(longest_target, target)
        height = place - first + 1
        if height * longest_source > source_tokens or height * longest_target > target_tokens:
            cuts.append(place)
            first, longest_source, longest_target = place, source, target
    return np.split(rows, cuts)
