"""Synthesizers: self-attention whose scores are learned, or made from the query alone (Tay et al. 2020)."""

from typing import cast

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from etude.model.attention import MultiHeadAttention, split_heads
from etude.model.cache import NO_CACHE, Cache
from etude.model.parts import Factory
from etude.model.position import Position
from etude.model.scale import Unscaled, resize


class Synthesizer(MultiHeadAttention):
    """Self-attention by synthetic scores, in place of the products of queries and keys or beside them.

    Whatever its scores do not use is not there: no keys without products, and no queries either unless the synthetic
    scores are made from them. What a position scheme adds to scores is added to these. Attention to the encoder is
    multi-head attention, of sizes of its own.

    Args:
        scale, backend, is_cross, d_model, heads, d_k, d_v, bias: see `MultiHeadAttention`.
        cross_heads, cross_d_k, cross_d_v: H, K and V of attention to the encoder.
        scores: makes the synthetic scores, from queries (B, H, T, K).
        mix: makes what combines them with the products.
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
        cross_heads: int,
        cross_d_k: int,
        cross_d_v: int,
        scores: Factory,
        mix: Factory,
    ) -> None:
        if is_cross:
            heads, d_k, d_v = cross_heads, cross_d_k, cross_d_v
            scale = resize(scale, heads, d_k)
        super().__init__(scale, backend, is_cross, d_model=d_model, heads=heads, d_k=d_k, d_v=d_v, bias=bias)
        if is_cross:
            return
        self.scores, self.mix = scores(), mix()
        if not self.mix.multiplies:
            self.k_proj, self.scale = cast(nn.Linear, _NoProjection()), Unscaled()
            if not self.scores.reads:
                self.q_proj = cast(nn.Linear, _NoProjection())

    def forward(self, x: Tensor, context: Tensor, mask: Tensor, position: Position, cache: Cache = NO_CACHE) -> Tensor:
        """Attend from `x` to `context`; arguments as in `MultiHeadAttention`."""
        if self.is_cross:
            return super().forward(x, context, mask, position, cache)
        start = cache.length
        keys, values = cache.read(lambda: self._project_keys_values(context, position, start))
        own = split_heads(self.q_proj(x), self.heads)
        queries, keys = self.scale(position.rotate(own, start), keys)
        bias = position.score_bias(queries, keys.size(2), start)
        queries, scores = self.mix(queries, self.scores(own, keys.size(2), start))
        scores = scores if bias is None else scores + bias
        return cast(Tensor, self.out_proj(self._join_heads(self.backend(queries, keys, values, mask, scores))))


class _NoProjection(nn.Module):
    """Projects to vectors without components."""

    def forward(self, x: Tensor) -> Tensor:
        """Map (B, T, D) to (B, T, 0)."""
        return x[..., :0]


class DenseScores(nn.Module):
    """`max(0, query) W`, a score for each position that a text may have; W is K x L, one for all heads.

    In Tay et al. (equation 2) a query's two layers have biases, and each head has a W of its own; Narang et al. (2021)
    share it.
    """

    reads = True

    def __init__(self, *, d_k: int, max_length: int) -> None:
        super().__init__()
        self.proj = nn.Linear(d_k, max_length, bias=False)

    def forward(self, queries: Tensor, length: int, start: int) -> Tensor:
        """Compute scores (B, H, T, S) of queries (B, H, T, K), the first of them at `start`, for S = `length` keys."""
        _check_length(length, self.proj.out_features)
        return F.linear(F.relu(queries), self.proj.weight[:length])


class RandomScores(nn.Module):
    """A learned score for each head and each pair of positions, small and random at first."""

    reads = False

    def __init__(self, *, heads: int, max_length: int) -> None:
        super().__init__()
        self.table = nn.Parameter(torch.empty(heads, max_length, max_length))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw from U(-b, b), b = sqrt(3 / L), as matrices of L x L are drawn."""
        bound = (3 / self.table.size(-1)) ** 0.5
        nn.init.uniform_(self.table, -bound, bound)

    def forward(self, queries: Tensor, length: int, start: int) -> Tensor:
        """Look up the scores (H, T, S); arguments as in `DenseScores`, of which the queries only say how many."""
        _check_length(length, self.table.size(-1))
        return self.table[:, start : start + queries.size(2), :length].contiguous()


class FactorizedScores(nn.Module):
    """`R1 R2^T` for each head: the learned scores of all pairs of positions are a product of two thin tables."""

    reads = False

    def __init__(self, *, heads: int, rank: int, max_length: int) -> None:
        super().__init__()
        self.rows = nn.Parameter(torch.empty(heads, max_length, rank))  # R1
        self.columns = nn.Parameter(torch.empty(heads, max_length, rank))  # R2
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw both so that the products are as large as the scores of `RandomScores` at first."""
        bound = (3 / (self.rows.size(1) * self.rows.size(2)) ** 0.5) ** 0.5
        for table in (self.rows, self.columns):
            nn.init.uniform_(table, -bound, bound)

    def forward(self, queries: Tensor, length: int, start: int) -> Tensor:
        """Multiply to scores (B, H, T, S), for each sentence, so that a batch costs what its sentences do."""
        _check_length(length, self.rows.size(1))
        rows = self.rows[:, start : start + queries.size(2)].expand(len(queries), -1, -1, -1)
        return rows @ self.columns[:, :length].mT


def _check_length(length: int, max_length: int) -> None:
    if length > max_length:
        raise ValueError(
            f"a sequence of {length} positions has no synthetic scores, which end at {max_length}: "
            "raise model.attention.scores.max_length"
        )


class Alone(nn.Module):
    """Synthetic scores only."""

    multiplies = False

    def forward(self, queries: Tensor, scores: Tensor) -> tuple[Tensor, Tensor]:
        """Return queries without components, whose products are zero, and the scores."""
        return queries[..., :0], scores


class Sum(nn.Module):
    """Products of queries and keys, plus synthetic scores."""

    multiplies = True

    def forward(self, queries: Tensor, scores: Tensor) -> tuple[Tensor, Tensor]:
        """Return both unchanged: scores are added to the products of queries (B, H, T, K)."""
        return queries, scores


class Alpha(nn.Module):
    """`(1 - a)` times the products plus `a` times the synthetic scores; a is a sigmoid of a learned number, 0 at first.

    The numbers of a layer's parts sum to one, as in Tay et al. (section 3.3), who take a softmax of several.
    """

    multiplies = True

    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.zeros(()))

    def forward(self, queries: Tensor, scores: Tensor) -> tuple[Tensor, Tensor]:
        """Scale queries (B, H, T, K) and scores, so that what is added up is weighted."""
        share = self.weight.sigmoid()
        return ((1 - share) * queries).to(queries.dtype), share * scores
