"""Attention (section 3.2): who looks at whom, and what is read there."""

from torch import Tensor, nn

from etude.model.cache import NO_CACHE, KeysValues, NoCache
from etude.model.position import Position


class MultiHeadAttention(nn.Module):
    """Multi-head attention (section 3.2.2): `Concat(head_1, ..., head_h) W_O`, each `softmax(Q K^T / sqrt(d_k)) V`.

    `d_k` and `d_v` are free of `d_model` and `heads`: W_Q and W_K are D x (H K), W_V is D x (H V), W_O is (H V) x D.

    Args:
        scale: of the scores (`model/scale`).
        kernel: how the rest of equation (1) is computed (`model/kernel`).
        crossing: whether this is attention from the decoder to the encoder.
    """

    def __init__(
        self,
        scale: nn.Module,
        kernel: nn.Module,
        crossing: bool,
        *,
        d_model: int,
        heads: int,
        d_k: int,
        d_v: int,
        bias: bool,
    ) -> None:
        super().__init__()
        self.heads = heads
        self.scale = scale
        self.kernel = kernel
        self.crossing = crossing
        self.queries = nn.Linear(d_model, heads * d_k, bias=bias)
        self.keys = nn.Linear(d_model, heads * d_k, bias=bias)
        self.values = nn.Linear(d_model, heads * d_v, bias=bias)
        self.output = nn.Linear(heads * d_v, d_model, bias=bias)

    def forward(
        self, x: Tensor, context: Tensor, mask: Tensor, position: Position, cache: NoCache = NO_CACHE
    ) -> Tensor:
        """Let each of `x` look at `context`.

        Args:
            x: (B, T, D), where the queries come from.
            context: (B, S, D), where keys and values come from; `x` itself in self-attention.
            mask: broadcastable to (B, H, T, S); True where looking is allowed.
            position: what the position scheme does to queries, keys and scores.
            cache: what is remembered between decoding steps.

        Returns:
            (B, T, D).
        """
        start = cache.length
        keys, values = cache.read(lambda: self._keys_values(context, position, start))
        queries = position.turn(self._split(self.queries(x)), start)
        queries, keys = self.scale(queries, keys)
        read = self.kernel(queries, keys, values, mask, position.bias(queries, keys.size(2), start))
        return self.output(read.transpose(1, 2).flatten(2))

    def _keys_values(self, context: Tensor, position: Position, start: int) -> KeysValues:
        return position.turn(self._split(self.keys(context)), start), self._split(self.values(context))

    def _split(self, x: Tensor) -> Tensor:
        """(B, T, H K) to (B, H, T, K)."""
        return x.unflatten(-1, (self.heads, -1)).transpose(1, 2)
