"""What one attention layer remembers of what it was fed.

Attention asks its cache for keys and values and never asks which kind it holds: the encoder remembers nothing, decoder
self-attention grows by the new positions, attention to the encoder is computed once.
"""

from collections.abc import Callable
from typing import Protocol

from torch import Tensor, cat

KeysValues = tuple[Tensor, Tensor]  # (B, H, S, K) and (B, H, S, V per head)


class Cache(Protocol):
    """What every kind answers."""

    length: int  # positions already seen, so that the first new one knows where it stands
    past: KeysValues | None  # what stands for positions that are no longer kept; None: all are

    def read(self, project: Callable[[], KeysValues]) -> KeysValues:
        """Keys and values of all positions, the new ones included."""

    def reorder(self, rows: Tensor) -> None:
        """Keep `rows` (R',) of the batch, in that order; a row may be repeated."""


class NoCache:
    """The encoder: the whole sequence is there at once."""

    length = 0
    past: KeysValues | None = None

    def read(self, project: Callable[[], KeysValues]) -> KeysValues:
        """Keys and values of all positions."""
        return project()

    def reorder(self, rows: Tensor) -> None:
        """Nothing to keep."""


class CrossAttentionCache(NoCache):
    """Attention to the encoder: computed at the first step, the same ever after."""

    def __init__(self) -> None:
        self._kept: KeysValues | None = None

    def read(self, project: Callable[[], KeysValues]) -> KeysValues:
        """Keys and values of the source."""
        if self._kept is None:
            self._kept = project()
        return self._kept

    def reorder(self, rows: Tensor) -> None:
        """Keep `rows` (R',) of the batch, in that order; a row may be repeated."""
        if self._kept is not None:
            self._kept = self._kept[0].index_select(0, rows), self._kept[1].index_select(0, rows)


class SelfAttentionCache(CrossAttentionCache):
    """Decoder self-attention: earlier positions are kept, the new ones are appended."""

    def read(self, project: Callable[[], KeysValues]) -> KeysValues:
        """Keys and values of all positions so far, the new ones included."""
        keys, values = project()
        if self._kept is not None:
            keys, values = cat([self._kept[0], keys], dim=2), cat([self._kept[1], values], dim=2)
        self._kept = keys, values
        self.length = keys.size(2)
        return self._kept


class RunningSums(NoCache):
    """Decoder self-attention without a softmax: of earlier positions two sums are kept, whatever their number.

    `past` is (B, H, K, V), the sum of the products of each key and its value, and (B, H, K), the sum of the keys.
    """

    def __init__(self) -> None:
        self._sums: KeysValues | None = None

    def read(self, project: Callable[[], KeysValues]) -> KeysValues:
        """Keys and values of the new positions; what came before them is in `past`."""
        keys, values = project()
        self.past, self.length = self._sums, self.length + keys.size(2)
        sums = keys.transpose(2, 3) @ values, keys.sum(dim=2)
        self._sums = sums if self.past is None else (self.past[0] + sums[0], self.past[1] + sums[1])
        return keys, values

    def reorder(self, rows: Tensor) -> None:
        """Keep `rows` (R',) of the batch, in that order; a row may be repeated."""
        if self._sums is not None:
            self._sums = self._sums[0].index_select(0, rows), self._sums[1].index_select(0, rows)


NO_CACHE = NoCache()
