"""Multi-head latent attention: keys and values from one short vector a position, which the cache keeps."""

from collections.abc import Callable
from typing import cast

import torch
from torch import Tensor, nn

from etude.model.attention import MultiHeadAttention, split_heads
from etude.model.cache import NO_CACHE, Cache, KeysValues
from etude.model.norm import RmsNorm
from etude.model.position import Position
from etude.model.scale import resize


class LatentAttention(MultiHeadAttention):
    """Multi-head latent attention (DeepSeek-AI 2024, section 2.1): a latent c = Norm(x W_D) of L components.

    The keys of a head are [c W_K, k_R]: its own product of the latent, of C components, and a key of K components that
    all heads share and that alone is given to the position scheme; values are c W_V. Queries are [x W_Q, q_R] likewise,
    projected from the input without a latent of their own, as in the smaller of their models. The cache of
    self-attention holds c and k_R. The scale is that of C + K components.

    Args:
        scale, backend, is_cross, d_model, heads, d_k, d_v, bias: see `MultiHeadAttention`; `d_k` is the part of a query
            and a key that knows its position.
        content: C.
        latent: L.
        eps: of the norm of the latent.
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
        content: int,
        latent: int,
        eps: float,
    ) -> None:
        scale = resize(scale, heads, content + d_k)
        super().__init__(scale, backend, is_cross, d_model=d_model, heads=heads, d_k=d_k, d_v=d_v, bias=bias)
        self.d_k = d_k
        self.down_proj = nn.Linear(d_model, latent, bias=bias)
        self.rotated_proj = nn.Linear(d_model, d_k, bias=bias)
        self.norm = RmsNorm(d_model=latent, eps=eps)
        self.q_proj = nn.Linear(d_model, heads * (content + d_k), bias=bias)
        self.k_proj = nn.Linear(latent, heads * content, bias=bias)
        self.v_proj = nn.Linear(latent, heads * d_v, bias=bias)

    def forward(self, x: Tensor, context: Tensor, mask: Tensor, position: Position, cache: Cache = NO_CACHE) -> Tensor:
        """Attend from `x` to `context`; arguments as in `MultiHeadAttention`."""
        start = cache.length
        keys, values = self._read(cache, lambda: self._project_keys_values(context, position, start))
        queries = split_heads(self.q_proj(x), self.heads)
        own, placed = queries[..., : -self.d_k], position.rotate(queries[..., -self.d_k :], start)
        queries, keys = self.scale(torch.cat([own, placed], dim=-1), keys)
        bias = position.score_bias(queries[..., -self.d_k :], keys.size(2), start)
        return cast(Tensor, self.out_proj(self._join_heads(self.backend(queries, keys, values, mask, bias))))

    def _read(self, cache: Cache, project: Callable[[], KeysValues]) -> KeysValues:
        """Return keys (B, H, S, C + K) and values (B, H, S, V); those of a source are made once."""
        if self.is_cross:
            return cache.read(lambda: self._expand(*project()))
        return self._expand(*cache.read(project))

    def _expand(self, rotated: Tensor, latents: Tensor) -> KeysValues:
        content = split_heads(self.k_proj(latents[:, 0]), self.heads)
        values = split_heads(self.v_proj(latents[:, 0]), self.heads)
        return torch.cat([content, rotated.expand(-1, self.heads, -1, -1)], dim=-1), values

    def _project_keys_values(self, context: Tensor, position: Position, start: int) -> KeysValues:
        """Project `context` to shared keys (B, 1, S, K) and latents (B, 1, S, L), which a cache keeps."""
        latents = self.norm(self.down_proj(context))
        return position.rotate(self.rotated_proj(context)[:, None], start), latents[:, None]
