"""Assign the rows of a split to batches (section 5.1), epoch by epoch.

Rows of similar length are batched together, so that little of a batch is padding, but with some noise: batches whose
sentences all have the same length and kind mislead the optimizer from step to step. Which lengths share a batch depends
on the seed; which rows of those lengths, and the order of the batches, changes with the epoch. An epoch therefore
always has the same number of batches, and any epoch can be computed without those before it.
"""

from concurrent.futures import Future
from threading import Thread

import numpy as np
import numpy.typing as npt

Rows = npt.NDArray[np.int64]
Lengths = npt.NDArray[np.integer]


class Epochs:
    """The batches of every epoch. The next epoch is planned during the current one: 36 million rows take seconds.

    Args:
        source_lengths, target_lengths: tokens in each row, EOS counted, (rows,)
        source_tokens, target_tokens: upper bounds of a batch's rows times its longest line, on each side; every single
            row must fit
        length_noise: target lengths that differ by up to so many tokens are treated as equal
        seed: determines the order, together with the epoch; both at least 0
    """

    def __init__(
        self,
        source_lengths: Lengths,
        target_lengths: Lengths,
        *,
        source_tokens: int,
        target_tokens: int,
        length_noise: float,
        seed: int,
    ) -> None:
        self._seed = seed
        self._sources, self._targets = _to_uint16(source_lengths), _to_uint16(target_lengths)
        places = _place_lengths(source_lengths, target_lengths, length_noise, seed)
        self._places = _argsort_rows(places, self._sources, self._targets)
        self._cuts = cut(source_lengths[places], target_lengths[places], source_tokens, target_tokens)
        self._ahead: tuple[int, Future[list[Rows]]] | None = None

    def __len__(self) -> int:
        """The number of batches of an epoch."""
        return len(self._cuts) + 1

    def take(self, epoch: int) -> list[Rows]:
        """Return the rows of every batch of an epoch, each row in one, and plan the next epoch in a thread."""
        ahead, self._ahead = self._ahead, None
        batches = ahead[1].result() if ahead and ahead[0] == epoch else self.plan(epoch)
        planned: Future[list[Rows]] = Future()
        Thread(target=self._plan_into, args=(planned, epoch + 1), daemon=True).start()
        self._ahead = epoch + 1, planned
        return batches

    def plan(self, epoch: int) -> list[Rows]:
        """Compute the batches of an epoch.

        The places of an epoch have fixed lengths; the rows of those lengths fill them in a shuffled order.
        """
        generator = np.random.default_rng([self._seed, epoch])
        shuffled = generator.permutation(len(self._places))
        placed = np.empty_like(shuffled)
        placed[self._places] = shuffled[_argsort_rows(shuffled, self._sources, self._targets)]
        batches = np.split(placed, self._cuts)
        return [batches[index] for index in generator.permutation(len(batches))]

    def _plan_into(self, planned: Future[list[Rows]], epoch: int) -> None:
        try:
            planned.set_result(self.plan(epoch))
        except BaseException as error:  # raised again by `take`
            planned.set_exception(error)


def cut(sources: Lengths, targets: Lengths, source_tokens: int, target_tokens: int) -> list[int]:
    """Find where to cut rows of these lengths, in the order given, into batches as large as the budgets allow."""
    cuts: list[int] = []
    first = 0
    while True:
        # no batch has more rows than if all were as short as its first
        most = min(source_tokens // int(sources[first]), target_tokens // int(targets[first]))
        rows = slice(first, first + max(1, most))
        longest_source, longest_target = (np.maximum.accumulate(side[rows]) for side in (sources, targets))
        heights = np.arange(1, len(longest_source) + 1)
        over = (heights * longest_source > source_tokens) | (heights * longest_target > target_tokens)
        first += int(over.argmax()) or len(over)
        if first >= len(sources):
            return cuts
        cuts.append(first)


def _place_lengths(source_lengths: Lengths, target_lengths: Lengths, length_noise: float, seed: int) -> Rows:
    """Sort the rows from short to long; their lengths are the lengths of the places of every epoch.

    They are sorted by target length plus noise, then by source length, alternately ascending and descending, so that
    source lengths do not jump where the target length changes.
    """
    noise = np.random.default_rng(seed).uniform(0, length_noise, len(target_lengths))
    lengths = np.floor(target_lengths + noise).astype(np.int64)
    alternating = np.where(lengths % 2, source_lengths.max() - source_lengths, source_lengths)
    return _argsort(_to_uint16(lengths), _to_uint16(alternating))


def _argsort_rows(rows: Rows, source_lengths: Lengths, target_lengths: Lengths) -> Rows:
    """Return indices that sort `rows` by both lengths, stably."""
    return _argsort(source_lengths[rows], target_lengths[rows])


def _argsort(first: Lengths, second: Lengths) -> Rows:
    """Return indices that sort stably by `first`, then by `second`: `np.lexsort`, but fast on 16 bits."""
    order = np.argsort(second, kind="stable")
    return order[np.argsort(first[order], kind="stable")]


def _to_uint16(lengths: Lengths) -> Lengths:
    """Convert to 16 bits where the lengths fit: NumPy radix-sorts these."""
    return lengths.astype(np.uint16) if lengths.max() < 1 << 16 else lengths
