"""Which rows of a split meet in which batch (section 5.1), epoch by epoch.

Rows of like length go together, so that little of a batch is padding. They do so with some noise: batches in which all
sentences have one length and one kind mislead the optimizer from step to step. Which lengths meet depends on the seed;
which rows of those lengths, and in which order the batches come, changes with the epoch. An epoch therefore always has
the same number of batches, and any can be made again without those before it.
"""

from concurrent.futures import Future
from threading import Thread

import numpy as np
import numpy.typing as npt

Rows = npt.NDArray[np.int64]
Lengths = npt.NDArray[np.integer]


class Epochs:
    """The batches of every epoch. While one is trained on, the next is made: of 36 million rows it takes seconds.

    Args:
        source_lengths, target_lengths: tokens in each row, EOS counted, (rows,)
        source_tokens, target_tokens: no batch's rows times its longest line exceeds these, on either side; each row
            fits them alone
        length_noise: target lengths that differ by up to so many tokens are not told apart
        seed: what the order depends on, beside the epoch; both at least 0
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
        self._sources, self._targets = _shorten(source_lengths), _shorten(target_lengths)
        places = _place_lengths(source_lengths, target_lengths, length_noise, seed)
        self._places = _order(places, self._sources, self._targets)
        self._cuts = cut(source_lengths[places], target_lengths[places], source_tokens, target_tokens)
        self._ahead: tuple[int, Future[list[Rows]]] | None = None

    def __len__(self) -> int:
        """Batches of an epoch."""
        return len(self._cuts) + 1

    def take(self, epoch: int) -> list[Rows]:
        """The rows of every batch of an epoch, each row in exactly one; the epoch after it is begun in a thread."""
        ahead, self._ahead = self._ahead, None
        batches = ahead[1].result() if ahead and ahead[0] == epoch else self.plan(epoch)
        planned: Future[list[Rows]] = Future()
        Thread(target=self._plan_into, args=(planned, epoch + 1), daemon=True).start()
        self._ahead = epoch + 1, planned
        return batches

    def plan(self, epoch: int) -> list[Rows]:
        """The same, made here and now.

        The places of an epoch are for rows of certain lengths; those that have them take them in a shuffled order.
        """
        generator = np.random.default_rng([self._seed, epoch])
        shuffled = generator.permutation(len(self._places))
        placed = np.empty_like(shuffled)
        placed[self._places] = shuffled[_order(shuffled, self._sources, self._targets)]
        batches = np.split(placed, self._cuts)
        return [batches[index] for index in generator.permutation(len(batches))]

    def _plan_into(self, planned: Future[list[Rows]], epoch: int) -> None:
        try:
            planned.set_result(self.plan(epoch))
        except BaseException as error:  # whoever asks for it is told
            planned.set_exception(error)


def cut(sources: Lengths, targets: Lengths, source_tokens: int, target_tokens: int) -> list[int]:
    """Where to cut rows of these lengths, in the order given, so that each part is as large as its budgets allow."""
    cuts: list[int] = []
    first = 0
    while True:
        # no part has more rows than if all were as short as its first
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
    """Rows from short to long, of whose lengths the places of every epoch are.

    Sorted by target length, give or take the noise; within that by source length, upwards and downwards in turn, so
    that the source lengths do not jump where the target length changes.
    """
    noise = np.random.default_rng(seed).uniform(0, length_noise, len(target_lengths))
    lengths = np.floor(target_lengths + noise).astype(np.int64)
    turned = np.where(lengths % 2, source_lengths.max() - source_lengths, source_lengths)
    return _sort(_shorten(lengths), _shorten(turned))


def _order(rows: Rows, source_lengths: Lengths, target_lengths: Lengths) -> Rows:
    """Indices that sort `rows` by both lengths and leave those that agree in their order."""
    return _sort(source_lengths[rows], target_lengths[rows])


def _sort(first: Lengths, second: Lengths) -> Rows:
    """Indices that sort by `first`, then by `second`, then leave the order: `np.lexsort`, but fast on 16 bits."""
    order = np.argsort(second, kind="stable")
    return order[np.argsort(first[order], kind="stable")]


def _shorten(lengths: Lengths) -> Lengths:
    """The same in 16 bits where they fit, for which NumPy sorts digit by digit."""
    return lengths.astype(np.uint16) if lengths.max() < 1 << 16 else lengths
