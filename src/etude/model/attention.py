"""Multi-head attention and its variants (section 3.2).

All of them project to queries, keys and values, let the position scheme rotate queries and keys, scale the scores, and
leave the rest to a backend. A variant may restrict the mask or replace the softmax.
"""

import torch
from torch import Tensor, nn

from etude.model.cache import NO_CACHE, Cache, CrossAttentionCache, KeysValues, RunningSums, SelfAttentionCache
from etude.model.position import Position
from etude.model.position.relative import offsets
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
        kv_heads: G; None: as many as there are heads.

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
            most = max(n for n in range(1, heads + 1) if heads % n == 0 and n <= max(1, self.kv_heads))
            raise ValueError(
                f"kv_heads={kv_heads} must divide heads={heads}: each serves as many heads of queries: "
                f"say model.attention.kv_heads={most}"
            )
        self.scale = scale
        self.backend = backend
        self.is_cross = is_cross
        self.q_proj = nn.Linear(d_model, heads * d_k, bias=bias)
        self.k_proj = nn.Linear(d_model, self.kv_heads * d_k, bias=bias)
        self.v_proj = nn.Linear(d_model, self.kv_heads * d_v, bias=bias)
        self.out_proj = nn.Linear(heads * d_v, d_model, bias=bias)

    def start(self) -> Cache:
        """Create the empty cache of a decoder layer."""
        return CrossAttentionCache() if self.is_cross else SelfAttentionCache()

    def forward(self, x: Tensor, context: Tensor, mask: Tensor, position: Position, cache: Cache = NO_CACHE) -> Tensor:
        """Attend from `x` to `context`.

        Args:
            x: (B, T, D), where the queries come from.
            context: (B, S, D), where keys and values come from; `x` itself in self-attention.
            mask: broadcastable to (B, H, T, S); True where attention is allowed.
            position: the position scheme, which may rotate queries and keys and add a bias to the scores.
            cache: keys and values of earlier positions.

        Returns:
            (B, T, D).
        """
        start = cache.length
        keys, values = map(self._repeat_kv, cache.read(lambda: self._project_keys_values(context, position, start)))
        queries = position.rotate(split_heads(self.q_proj(x), self.heads), start)
        queries, keys = self.scale(queries, keys)
        bias = position.score_bias(queries, keys.size(2), start)
        return self._combine(self.backend(queries, keys, values, self._restrict_mask(mask, queries, keys, start), bias))

    def _project_keys_values(self, context: Tensor, position: Position, start: int) -> KeysValues:
        """Project `context` to rotated keys (B, G, S, K) and values (B, G, S, V), which a cache keeps."""
        keys = split_heads(self.k_proj(context), self.kv_heads)
        values = split_heads(self.v_proj(context), self.kv_heads)
        return position.rotate(keys, start), values

    def _repeat_kv(self, x: Tensor) -> Tensor:
        """Repeat keys or values (B, G, S, K) for the query heads that share them: (B, H, S, K)."""
        return x if self.kv_heads == self.heads else x.repeat_interleave(self.heads // self.kv_heads, dim=1)

    def _combine(self, out: Tensor) -> Tensor:
        """Make what the heads found, (B, H, T, V), the output (B, T, D)."""
        return self.out_proj(self._join_heads(out))

    def _join_heads(self, out: Tensor) -> Tensor:
        """Put what the heads found, (B, H, T, V), side by side: (B, T, H V)."""
        return out.transpose(1, 2).flatten(2)

    def _restrict_mask(self, mask: Tensor, queries: Tensor, keys: Tensor, start: int) -> Tensor:
        """Mask out allowed positions that this variant does not attend to; the first query is at position `start`."""
        return mask


class LocalAttention(MultiHeadAttention):
    """Restricted self-attention (section 4, Table 1): a position attends to those within `window` of it on either side.

    Attention from the decoder to the encoder is not restricted, as source and target share no axis. The window is a
    mask: it shows what short-range attention loses in quality, not what it saves in time.

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

    def _restrict_mask(self, mask: Tensor, queries: Tensor, keys: Tensor, start: int) -> Tensor:
        if self.is_cross:
            return mask
        return mask & (offsets(queries, keys.size(2), start).abs() <= self.window)


class LinearAttention(MultiHeadAttention):
    """Attention without a softmax (Katharopoulos et al. 2020): weights `phi(q) . phi(k)`, divided by their sum.

    phi(x) = elu(x) + 1, element by element, of the scaled and rotated queries and keys. The output of a query then
    follows from two sums over all earlier positions, and a decoding step costs the same however many there are (their
    equations 18-20). Where all positions are given at once, the products are computed and masked as in any other
    attention, so time is saved in decoding only. Nothing can be added to its scores: it works with the position schemes
    that add to embeddings or rotate. They rotate before phi, and not after it as in Su et al. 2021 (equation 19): so
    weights stay positive and sum to one, but depend on both positions, and not on the offset alone.

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
        """Create an empty cache: two running sums for self-attention, keys and values for cross-attention."""
        return CrossAttentionCache() if self.is_cross else RunningSums()

    def forward(self, x: Tensor, context: Tensor, mask: Tensor, position: Position, cache: Cache = NO_CACHE) -> Tensor:
        """Attend from `x` to `context`; arguments as in `MultiHeadAttention`."""
        start = cache.length
        queries = position.rotate(split_heads(self.q_proj(x), self.heads), start)
        keys, values = cache.read(lambda: self._project_keys_values(context, position, start))
        if position.score_bias(queries, keys.size(2), start) is not None:
            raise ValueError("model/attention=linear has no softmax, and this position scheme adds to its scores")
        queries = _feature_map(self.scale(queries, queries)[0])
        mask = mask[..., mask.size(-1) - keys.size(2) :]  # without the positions that are in the running sums
        weights = (queries @ keys.transpose(2, 3)).masked_fill(~(mask | ~mask.any(dim=-1, keepdim=True)), 0.0)
        total = weights.sum(dim=-1, keepdim=True)
        if cache.past is not None:
            total = total + queries @ cache.past[1][..., None]
        # where all products of features underflow, 0 / 0 would be NaN; a quotient by 1 has a finite gradient, too
        total = total.masked_fill(total < torch.finfo(total.dtype).tiny, 1.0)
        weights = self.watched(weights / total)
        out = weights @ values
        if cache.past is not None:
            out = out + queries @ cache.past[0] / total
        return self.out_proj(self._join_heads(out))

    def _project_keys_values(self, context: Tensor, position: Position, start: int) -> KeysValues:
        keys, values = super()._project_keys_values(context, position, start)
        return _feature_map(self.scale(keys, keys)[1]), values


def _feature_map(x: Tensor) -> Tensor:
    """Compute phi(x) = elu(x) + 1 without its cancellation, which gives 0 below -17, and in half precision below -6."""
    return torch.where(x > 0, x + 1, x.clamp(max=0).exp())


def split_heads(x: Tensor, heads: int) -> Tensor:
    """Reshape (B, T, H K) to (B, H, T, K)."""
    return x.unflatten(-1, (heads, x.size(-1) // heads)).transpose(1, 2)
