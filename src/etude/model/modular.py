"""Multi-head attention whose further steps are parts of their own, each an axis below `model/attention`.

Each does one thing to what it is given and returns it otherwise unchanged, so that they can be combined freely, with
every scale, every position scheme and every backend.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, cast

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from etude.model.attention import MultiHeadAttention, split_heads
from etude.model.cache import NO_CACHE, Cache, KeysValues
from etude.model.numbered import Numbered, Place, check_pattern
from etude.model.parts import Factory
from etude.model.position import Position
from etude.model.position.relative import offsets
from etude.model.scale import soft_cap


class ModularAttention(MultiHeadAttention):
    """Multi-head attention with further steps: `Gate(softmax(Sink(Cap(Norm(Q) Norm(K)^T))) Mix(V)) W_O` under a span.

    Args:
        scale, backend, is_cross, d_model, heads, d_k, d_v, bias, kv_heads: see `MultiHeadAttention`.
        qk_norm: makes a norm of vectors of size K, one for the queries and one for the keys, before they are rotated.
        values: mixes the values of a layer with others; in self-attention alone.
        cap: what is done to the scaled scores before biases are added.
        span: which of the allowed keys a query attends to; in self-attention alone.
        sink: where a head may look when it looks at no key.
        gate: what multiplies the output of each head.
        out_norm: makes a norm of D-vectors, of what is returned.
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
        kv_heads: int,
        qk_norm: Factory,
        values: Factory,
        cap: Factory,
        span: Factory,
        sink: Factory,
        gate: Factory,
        out_norm: Factory,
    ) -> None:
        sizes = {"d_model": d_model, "heads": heads, "d_k": d_k, "d_v": d_v, "kv_heads": kv_heads}
        super().__init__(scale, backend, is_cross, bias=bias, **sizes)
        self.q_norm, self.k_norm = qk_norm(), qk_norm()
        self.values = OwnValues() if is_cross else values()
        self.cap, self.span, self.sink, self.gate = cap(), GlobalSpan() if is_cross else span(), sink(), gate()
        self.out_norm = out_norm()

    def forward(self, x: Tensor, context: Tensor, mask: Tensor, position: Position, cache: Cache = NO_CACHE) -> Tensor:
        """Attend from `x` to `context`; arguments as in `MultiHeadAttention`."""
        start = cache.length
        keys, values = map(self._repeat_kv, cache.read(lambda: self._project_keys_values(context, position, start)))
        queries = position.rotate(self.q_norm(split_heads(self.q_proj(x), self.heads)), start)
        queries, keys = self.scale(queries, keys)
        bias = position.score_bias(queries, keys.size(2), start)
        mask = self.span(mask, queries, keys, start)
        queries, keys, bias = self.cap(queries, keys, bias)
        keys, values, mask, bias = self.sink(keys, values, mask, bias)
        out = self.gate(self.backend(queries, keys, values, mask, bias), x)
        return cast(Tensor, self.out_norm(self.out_proj(self._join_heads(out))))

    def _project_keys_values(self, context: Tensor, position: Position, start: int) -> KeysValues:
        keys = self.k_norm(split_heads(self.k_proj(context), self.kv_heads))
        values = self.values(split_heads(self.v_proj(context), self.kv_heads))
        return position.rotate(keys, start), values


class OwnValues(nn.Identity):
    """The values of each layer are its own."""


@dataclass
class _Carried:
    """What the first layer of a stack leaves for the others, within one call of the stack."""

    values: Tensor | None = None


class ValueResidual(Numbered):
    """Values mixed with those of the first layer: `lambda_1 V_1 + lambda_2 V_n` (Zhou et al. 2024, equation 6).

    Both factors are learned, one half at first; the first layer has none.
    """

    factors: nn.Parameter

    def __init__(self) -> None:
        super().__init__()
        self.carried = _Carried()
        self.is_first, self.is_last = True, True

    def set_place(self, place: Place) -> None:
        """Make the factors of a layer behind the first, and share with that what it leaves."""
        self.is_first, self.is_last = place.layer == 0, place.layer == place.n_layers - 1
        self.carried = cast(ValueResidual, place.first).carried
        if not self.is_first:
            self.factors = nn.Parameter(torch.full((2,), 0.5))

    def forward(self, values: Tensor) -> Tensor:
        """Mix the values (B, G, S, V) of new positions with those that the first layer computed for them."""
        first = values if self.is_first else cast(Tensor, self.carried.values)
        self.carried.values = None if self.is_last else first  # nothing stays behind a call
        if self.is_first:
            return values
        return (self.factors[0] * first + self.factors[1] * values).to(values.dtype)


class NoCap(nn.Module):
    """Scores as they are."""

    def forward(self, queries: Tensor, keys: Tensor, bias: Tensor | None) -> tuple[Tensor, Tensor, Tensor | None]:
        """Return queries (B, H, T, K), keys (B, H, S, K) and bias unchanged."""
        return queries, keys, bias


class SoftCap(nn.Module):
    """Scores `cap * tanh(scores / cap)`, between -cap and cap (Gemma Team 2024, section 2).

    The scores are no product any more: they are given to the backend as a bias, with vectors of no components whose
    product is zero.

    Raises:
        ValueError: `cap` is not above zero.
    """

    def __init__(self, *, cap: float) -> None:
        super().__init__()
        if cap <= 0:
            raise ValueError(f"scores are kept between -cap and cap: cap must be above 0, not {cap}")
        self.cap = cap

    def forward(self, queries: Tensor, keys: Tensor, bias: Tensor | None) -> tuple[Tensor, Tensor, Tensor | None]:
        """Return vectors without components, and the capped scores as a bias (B, H, T, S)."""
        scores = soft_cap(queries @ keys.mT, self.cap)
        return queries[..., :0], keys[..., :0], scores if bias is None else scores + bias


class GlobalSpan(nn.Module):
    """A query attends to all keys that it may attend to."""

    def forward(self, mask: Tensor, queries: Tensor, keys: Tensor, start: int) -> Tensor:
        """Return the mask."""
        return mask


class PatternedSpan(Numbered):
    """Some layers attend to a window, others to everything, in a pattern that repeats (Beltagy et al. 2020).

    A local layer lets a query attend to itself and to the `window` keys before it, and after it where the mask does.
    The window is a mask: it shows what short-range attention loses in quality, not what it saves in time.

    Args:
        window: how far a query sees in a local layer.
        pattern: "local" or "global" for the first layers; the next ones repeat it.

    Raises:
        ValueError: the pattern is empty, or has another word.
    """

    def __init__(self, *, window: int, pattern: Sequence[Literal["local", "global"]]) -> None:
        super().__init__()
        self.window, self.pattern = window, check_pattern(pattern, "local", "global")
        self.reach = self._reach(0)

    def set_place(self, place: Place) -> None:
        """Choose what the pattern says of the layer."""
        self.reach = self._reach(place.layer)

    def _reach(self, n: int) -> float:
        return self.window if self.pattern[n % len(self.pattern)] == "local" else float("inf")

    def forward(self, mask: Tensor, queries: Tensor, keys: Tensor, start: int) -> Tensor:
        """Mask out what lies beyond the window; the first query is at position `start`."""
        return mask & (offsets(queries, keys.size(2), start).abs() <= self.reach)


class NoSink(nn.Module):
    """The weights of a query sum to one."""

    def forward(
        self, keys: Tensor, values: Tensor, mask: Tensor, bias: Tensor | None
    ) -> tuple[Tensor, Tensor, Tensor, Tensor | None]:
        """Return keys, values, mask and bias unchanged."""
        return keys, values, mask, bias


class ZeroSink(nn.Module):
    """Softmax off by one: `exp(s_i) / (1 + sum_j exp(s_j))`, so that a head need not look anywhere (Miller 2023).

    It is one more key, of zeros and the score 0, whose value is zeros.
    """

    def forward(
        self, keys: Tensor, values: Tensor, mask: Tensor, bias: Tensor | None
    ) -> tuple[Tensor, Tensor, Tensor, Tensor | None]:
        """Append a key to (B, H, S, K) and (B, H, S, V), with its columns of mask and bias."""
        longer = F.pad(keys, (0, 0, 0, 1)), F.pad(values, (0, 0, 0, 1)), F.pad(mask, (0, 1), value=True)
        return *longer, self._append_score(bias, keys)

    def _append_score(self, bias: Tensor | None, keys: Tensor) -> Tensor | None:
        return None if bias is None else F.pad(bias, (0, 1))


class LearnedSink(ZeroSink):
    """Softmax with one more score that each head learns, 0 at first (OpenAI 2025): what it takes goes nowhere."""

    def __init__(self, *, heads: int) -> None:
        super().__init__()
        self.score = nn.Parameter(torch.zeros(heads))

    def _append_score(self, bias: Tensor | None, keys: Tensor) -> Tensor:
        own = self.score[:, None, None]
        if bias is None:
            return F.pad(own, (keys.size(2), 0))
        bias = bias.expand(*bias.shape[:-3], len(own), *bias.shape[-2:])
        return torch.cat([bias, own.to(bias.dtype).expand(*bias.shape[:-1], 1)], dim=-1)


class NoGate(nn.Module):
    """The output of each head as it is."""

    def forward(self, out: Tensor, x: Tensor) -> Tensor:
        """Return `out` (B, H, T, V)."""
        return out


class HeadwiseGate(nn.Module):
    """The output of each head times `sigmoid(x W)`, a number for each head and position (Qiu et al. 2025)."""

    def __init__(self, *, d_model: int, heads: int) -> None:
        super().__init__()
        self.proj = nn.Linear(d_model, heads, bias=False)

    def forward(self, out: Tensor, x: Tensor) -> Tensor:
        """Multiply `out` (B, H, T, V) by a gate computed from the layer's input `x` (B, T, D)."""
        return out * self.proj(x).sigmoid().transpose(1, 2)[..., None]


class HeadScale(nn.Module):
    """The output of each head times a number that it learns, 1 at first (Shleifer et al. 2021)."""

    def __init__(self, *, heads: int) -> None:
        super().__init__()
        self.factor = nn.Parameter(torch.ones(heads))

    def forward(self, out: Tensor, x: Tensor) -> Tensor:
        """Multiply `out` (B, H, T, V)."""
        return (out * self.factor[:, None, None]).to(out.dtype)
