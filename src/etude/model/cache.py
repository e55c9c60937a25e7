"""Key-value caches for incremental decoding.

Attention reads keys and values from a cache without knowing its kind: the encoder's keeps nothing, that of decoder
self-attention grows by the new positions, that of cross-attention is computed once.
"""

from collections.abc import Callable
from typing import Protocol

import torch
from torch import Tensor, cat

KeysValues = tuple[Tensor, Tensor]  # (B, G, S, K) and (B, G, S, V), of G heads of keys and values


class Cache(Protocol):
    """The interface of every cache."""

    length: int  # positions already processed: the index of the first new one
    past: tuple[Tensor, Tensor] | None  # a summary of positions whose keys and values are not kept; None: all are kept

    def read(self, project: Callable[[], KeysValues]) -> KeysValues:
        """Return keys and values of all positions, including the new ones, which `project` computes."""

    def reorder(self, rows: Tensor) -> None:
        """Keep `rows` (R',) of the batch, in that order; a row may be repeated."""


class NoCache:
    """No cache, for the encoder, which processes the whole sequence at once."""

    length = 0
    past: tuple[Tensor, Tensor] | None = None

    def read(self, project: Callable[[], KeysValues]) -> KeysValues:
        """Compute keys and values."""
        return project()

    def reorder(self, rows: Tensor) -> None:
        """Do nothing: there is nothing to reorder."""


class CrossAttentionCache(NoCache):
    """Keys and values of the encoder's output, computed at the first step and reused at every later one."""

    def __init__(self) -> None:
        self._keys_values: KeysValues | None = None

    def read(self, project: Callable[[], KeysValues]) -> KeysValues:
        """Return keys and values of the source."""
        if self._keys_values is None:
            self._keys_values = project()
        return self._keys_values

    def reorder(self, rows: Tensor) -> None:
        """Keep `rows` (R',) of the batch, in that order; a row may be repeated."""
        if self._keys_values is not None:
            self._keys_values = self._keys_values[0].index_select(0, rows), self._keys_values[1].index_select(0, rows)


class SelfAttentionCache(CrossAttentionCache):
    """Keys and values of all target positions so far; those of new positions are appended."""

    def read(self, project: Callable[[], KeysValues]) -> KeysValues:
        """Append keys and values of the new positions and return those of all positions."""
        keys, values = project()
        if self._keys_values is not None:
            keys, values = cat([self._keys_values[0], keys], dim=2), cat([self._keys_values[1], values], dim=2)
        self._keys_values = keys, values
        self.length = keys.size(2)
        return self._keys_values


class LastPositions(CrossAttentionCache):
    """The last positions alone, for what sees no further back; before the first there are zeros.

    Args:
        count: how many are kept.
    """

    def __init__(self, count: int) -> None:
        super().__init__()
        self.count = count

    def read(self, project: Callable[[], KeysValues]) -> KeysValues:
        """Return keys and values of the positions kept, then those of new positions."""
        keys, values = project()
        self.length += keys.size(2)
        kept = self._keys_values or (keys.new_zeros(*x.shape[:2], self.count, x.size(3)) for x in (keys, values))
        keys, values = (cat([old, new], dim=2) for old, new in zip(kept, (keys, values), strict=True))
        first = keys.size(2) - self.count
        self._keys_values = keys[:, :, first:], values[:, :, first:]
        return keys, values


class RunningSums(NoCache):
    """Two sums over earlier positions, for decoder self-attention without a softmax; their size does not grow.

    `past` is (B, H, K, V), the sum of the products of each key and its value, and (B, H, K), the sum of the keys. They
    are added up in float32 at least: in half precision a long sum would no longer grow by what is added.
    """

    def __init__(self) -> None:
        self._sums: tuple[Tensor, Tensor] | None = None

    def read(self, project: Callable[[], KeysValues]) -> KeysValues:
        """Return keys and values of the new positions; the sums over earlier ones are in `past`."""
        keys, values = project()
        self.length += keys.size(2)
        wide = torch.promote_types(keys.dtype, torch.float32)
        products, total = (keys.transpose(2, 3) @ values).to(wide), keys.sum(dim=2, dtype=wide)
        if self._sums is not None:
            self.past = self._sums[0].to(keys.dtype), self._sums[1].to(keys.dtype)
            products, total = self._sums[0] + products, self._sums[1] + total
        self._sums = products, total
        return keys, values

    def reorder(self, rows: Tensor) -> None:
        """Keep `rows` (R',) of the batch, in that order; a row may be repeated."""
        if self._sums is not None:
            self._sums = self._sums[0].index_select(0, rows), self._sums[1].index_select(0, rows)


NO_CACHE = NoCache()
