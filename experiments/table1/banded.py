"""Restricted self-attention that computes only the scores inside its window."""

from torch import Tensor
from torch.nn import functional as F

from etude.model.attention import LocalAttention
from etude.model.cache import NO_CACHE, Cache
from etude.model.position import Position


class BandedAttention(LocalAttention):
    """`LocalAttention` for an encoder in r n d operations, r = 2 window + 1: each query is multiplied by r keys only.

    Raises:
        ValueError: the position scheme adds to scores.
    """

    def forward(self, x: Tensor, context: Tensor, mask: Tensor, position: Position, cache: Cache = NO_CACHE) -> Tensor:
        """Apply self-attention to `x` (B, S, D) with a mask (B, 1, 1, S); see `MultiHeadAttention`."""
        queries = position.rotate(self.q_proj(x).unflatten(-1, (self.heads, -1)).transpose(1, 2), 0)
        keys, values = self._project_keys_values(context, position, 0)
        queries, keys = self.scale(queries, keys)
        if position.score_bias(queries, keys.size(2), 0) is not None:
            raise ValueError("banded attention has no scores of all pairs, to which this position scheme adds")
        near = self._windows(mask.transpose(2, 3)).transpose(3, 4)  # (B, 1, S, 1, r)
        read = self.backend(queries[:, :, :, None], self._windows(keys), self._windows(values), near, None)
        return self.out_proj(read.squeeze(3).transpose(1, 2).flatten(2))

    def _windows(self, x: Tensor) -> Tensor:
        """Map (B, H, S, K) to the window of each position, (B, H, S, r, K); zeros, or False, beyond the ends."""
        padded = F.pad(x, (0, 0, self.window, self.window))
        return padded.unfold(2, 2 * self.window + 1, 1).transpose(3, 4)
