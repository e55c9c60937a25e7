"""Attention (section 3.2): who looks at whom, and what is read there.

All kinds share one course: project, let the position scheme rotate queries and keys, scale, read. A kind says which of
the allowed positions it really looks at.
"""

import torch
from torch import Tensor, nn

from etude.model.cache import NO_CACHE, Cache, CrossAttentionCache, KeysValues, RunningSums, SelfAttentionCache
from etude.model.position import Position
from etude.model.watched import Watched


class MultiHeadAttention(nn.Module):
    """Multi-head attention (section 3.2.2): `Concat(head_1, ..., head_h) W_O`, each `softmax(Q K^T / sqrt(d_k)) V`.

    W_Q is D x (H K), W_K is D x (G K), W_V is D x (G V), W_O is (H V) x D; `d_k` and `d_v` are free of `d_model` and
    `heads`. With fewer than H heads of keys and values, each serves H / G neighbouring heads of queries: grouped-query
    attention (Ainslie et al. 2023), and multi-query attention (Shazeer 2019) where G is one. The decoder's caches hold
    G heads.

    Args:
        scale: of the scores (`model/scale`).
        backend: how the rest of equation (1) is computed (`model/backend`).
        is_cross: whether this is attention from the decoder to the encoder.
        d_model: D.
        heads: H.
        d_k: K, of a query and a key.
        d_v: V, of a value.
        bias: whether the four projections have one.
        kv_heads: G; as many as there are heads if nothing is said.

    Raises:
        ValueError: `kv_heads` does not divide `heads`.
    """

    def __init__(
        self,
        scale: nn.Module,
        backend: nn.Module,
        is_cross: bool,
        *,
        d_model: int,
        heads: int,
        d_k: int,
        d_v: int,
        bias: bool,
        kv_heads: int | None = None,
    ) -> None:
        super().__init__()
        self.heads, self.kv_heads = heads, heads if kv_heads is None else kv_heads
        if self.kv_heads < 1 or heads % self.kv_heads:
            raise ValueError(f"kv_heads={kv_heads} must divide heads={heads}: each serves as many heads of queries")
        self.scale = scale
        self.backend = backend
        self.is_cross = is_cross
        self.q_proj = nn.Linear(d_model, heads * d_k, bias=bias)
        self.k_proj = nn.Linear(d_model, self.kv_heads * d_k, bias=bias)
        self.v_proj = nn.Linear(d_model, self.kv_heads * d_v, bias=bias)
        self.out_proj = nn.Linear(heads * d_v, d_model, bias=bias)

    def start(self) -> Cache:
        """What a decoder's layer remembers before its first token."""
        return CrossAttentionCache() if self.is_cross else SelfAttentionCache()

    def forward(self, x: Tensor, context: Tensor, mask: Tensor, position: Position, cache: Cache = NO_CACHE) -> Tensor:
        """Let each of `x` look at `context`.

        Args:
            x: (B, T, D), where the queries come from.
            context: (B, S, D), where keys and values come from; `x` itself in self-attention.
            mask: broadcastable to (B, H, T, S); True where looking is allowed.
            position: what the position scheme does to queries, keys and scores.
            cache: what is remembered of the positions before.

        Returns:
            (B, T, D).
        """
        start = cache.length
        keys, values = map(self._repeat, cache.read(lambda: self._keys_values(context, position, start)))
        queries = position.rotate(_split(self.q_proj(x), self.heads), start)
        queries, keys = self.scale(queries, keys)
        bias = position.score_bias(queries, keys.size(2), start)
        read = self.backend(queries, keys, values, self._visible(mask, queries, keys, start), bias)
        return self.out_proj(read.transpose(1, 2).flatten(2))

    def _keys_values(self, context: Tensor, position: Position, start: int) -> KeysValues:
        """Of `context` alone, with G heads: what a cache keeps."""
        keys, values = _split(self.k_proj(context), self.kv_heads), _split(self.v_proj(context), self.kv_heads)
        return position.rotate(keys, start), values

    def _repeat(self, x: Tensor) -> Tensor:
        """Keys or values (B, G, S, K) as each head of queries sees them: (B, H, S, K)."""
        return x if self.kv_heads == self.heads else x.repeat_interleave(self.heads // self.kv_heads, dim=1)

    def _visible(self, mask: Tensor, queries: Tensor, keys: Tensor, start: int) -> Tensor:
        """Where looking is allowed and this kind looks, broadcastable to (B, H, T, S); queries begin at `start`."""
        return mask


class LocalAttention(MultiHeadAttention):
    """Restricted self-attention (section 4, Table 1): a position sees those within `window` of it, on either side.

    Attention from the decoder to the encoder sees everything: source and target share no axis. The window is a mask, so
    this shows what is lost by not looking far, and not what is saved.

    Raises:
        ValueError: `window` is negative.
    """

    def __init__(
        self,
        scale: nn.Module,
        backend: nn.Module,
        is_cross: bool,
        *,
        d_model: int,
        heads: int,
        d_k: int,
        d_v: int,
        bias: bool,
        window: int,
    ) -> None:
        if window < 0:
            raise ValueError(f"window={window} must be 0 or more: 0 lets a position see itself alone")
        super().__init__(scale, backend, is_cross, d_model=d_model, heads=heads, d_k=d_k, d_v=d_v, bias=bias)
        self.window = window

    def _visible(self, mask: Tensor, queries: Tensor, keys: Tensor, start: int) -> Tensor:
        if self.is_cross:
            return mask
        at = torch.arange(start, start + queries.size(2), device=mask.device)
        seen = torch.arange(keys.size(2), device=mask.device)
        return mask & ((at[:, None] - seen).abs() <= self.window)


class LinearAttention(MultiHeadAttention):
    """Attention without a softmax (Katharopoulos et al. 2020): weights `phi(q) . phi(k)`, divided by their sum.

    phi(x) = elu(x) + 1, element by element, of the scaled and rotated queries and keys. What a query reads of all
    positions before it then follows from two sums over them, and a decoding step costs the same however many there are
    (their equations 18-20). Where all positions are there at once, products are computed and masked as in any other
    attention: this shows what is lost, and what is saved in decoding alone. Nothing can be added to its scores, so that
    it goes with the position schemes that add to embeddings or rotate.

    Raises:
        ValueError: the position scheme adds to scores.
    """

    def __init__(
        self,
        scale: nn.Module,
        backend: nn.Module,
        is_cross: bool,
        *,
        d_model: int,
        heads: int,
        d_k: int,
        d_v: int,
        bias: bool,
    ) -> None:
        super().__init__(scale, nn.Identity(), is_cross, d_model=d_model, heads=heads, d_k=d_k, d_v=d_v, bias=bias)
        self.watched = Watched(is_cross, heads)

    def start(self) -> Cache:
        """Two sums in self-attention; the keys and values of the encoder."""
        return CrossAttentionCache() if self.is_cross else RunningSums()

    def forward(self, x: Tensor, context: Tensor, mask: Tensor, position: Position, cache: Cache = NO_CACHE) -> Tensor:
        """Let each of `x` look at `context`; as in `MultiHeadAttention`."""
        start = cache.length
        queries = position.rotate(_split(self.q_proj(x), self.heads), start)
        keys, values = cache.read(lambda: self._keys_values(context, position, start))
        if position.score_bias(queries, keys.size(2), start) is not None:
            raise ValueError("model/attention=linear has no softmax, and this position scheme adds to its scores")
        queries = _positive(self.scale(queries, queries)[0])
        here = mask[..., mask.size(-1) - keys.size(2) :]  # of the keys that are kept
        weights = (queries @ keys.transpose(2, 3)).masked_fill(~(here | ~here.any(dim=-1, keepdim=True)), 0.0)
        total = weights.sum(dim=-1, keepdim=True)
        if cache.past is not None:
            total = total + queries @ cache.past[1][..., None]
        weights = self.watched(weights / total)
        read = weights @ values
        if cache.past is not None:
            read = read + queries @ cache.past[0] / total
        return self.out_proj(read.transpose(1, 2).flatten(2))

    def _keys_values(self, context: Tensor, position: Position, start: int) -> KeysValues:
        keys, values = super()._keys_values(context, position, start)
        return _positive(self.scale(keys, keys)[1]), values


def _positive(x: Tensor) -> Tensor:
    """phi: above zero everywhere."""
    return nn.functional.elu(x) + 1


def _split(x: Tensor, heads: int) -> Tensor:
    """(B, T, H K) to (B, H, T, K)."""
    return x.unflatten(-1, (heads, -1)).transpose(1, 2)
