"""Evolved Transformer: layers found by a search, each as deep as two of the Transformer (So et al. 2019)."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import ClassVar, cast

from torch import Tensor, nn
from torch.nn import functional as F

from etude.model.block import (
    CausalLayer,
    DecoderLayer,
    EncoderLayer,
    LayerCache,
    ParallelCausalLayer,
    ParallelDecoderLayer,
)
from etude.model.cache import NO_CACHE, Cache, LastPositions
from etude.model.convolution import see_neighbours
from etude.model.feedforward import NoFeedForward
from etude.model.parts import Factory, Parts
from etude.model.position import Position
from etude.model.state import SourceRows
from etude.model.transformer import TransformerDecoder, TransformerEncoder


class Dense(nn.Module):
    """A convolution of all channels at once: one matrix for the `kernel` positions that it covers, side by side."""

    def __init__(self, d_in: int, d_out: int, kernel: int) -> None:
        super().__init__()
        self.kernel = kernel
        self.mix = nn.Linear(d_in * kernel, d_out)

    def forward(self, x: Tensor, mask: Tensor, cache: Cache) -> Tensor:
        """Map (B, T, C) to (B, T, C'); mask and cache as in `see_neighbours`."""
        seen = see_neighbours(x, self.kernel, mask, cache)
        out: Tensor = self.mix(seen.unfold(1, self.kernel, 1).flatten(2))
        return out


class Separable(nn.Module):
    """A convolution of each channel by itself, then a matrix across channels (Chollet 2017)."""

    def __init__(self, d_in: int, d_out: int, kernel: int) -> None:
        super().__init__()
        self.kernel = kernel
        self.each, self.mix = nn.Conv1d(d_in, d_in, kernel, groups=d_in, bias=False), nn.Linear(d_in, d_out)

    def forward(self, x: Tensor, mask: Tensor, cache: Cache) -> Tensor:
        """Map (B, T, C) to (B, T, C'); mask and cache as in `see_neighbours`."""
        seen = see_neighbours(x, self.kernel, mask, cache)
        out: Tensor = self.mix(self.each(seen.mT).mT)
        return out


class Branches(nn.Module):
    """`last(LayerNorm(max(0, wide(x)) + activation(narrow(x))))`; zeros are appended to what is narrower than a sum.

    Dropout is that of the whole sub-layer; the released code has one in either branch as well.

    Args:
        wide, narrow, last: each a `Dense` or a `Separable`.
        activation: of the narrow branch.
        norm: of the sum of both.
    """

    def __init__(
        self,
        wide: Dense | Separable,
        narrow: Dense | Separable,
        last: Dense | Separable,
        *,
        activation: Callable[[Tensor], Tensor],
        norm: nn.Module,
    ) -> None:
        super().__init__()
        self.wide, self.narrow, self.norm, self.last = wide, narrow, norm, last
        self.activation = activation

    def start(self) -> list[Cache]:
        """Create the caches of a decoder layer."""
        return [LastPositions(part.kernel - 1) for part in (self.wide, self.narrow, self.last)]

    def forward(self, x: Tensor, mask: Tensor, caches: Sequence[Cache]) -> Tensor:
        """Map (B, T, D) to (B, T, D); mask as in `see_neighbours`, with a cache for each convolution."""
        of_wide, of_narrow, of_last = caches
        hidden = F.relu(self.wide(x, mask, of_wide))
        hidden = hidden + _widen(self.activation(self.narrow(x, mask, of_narrow)), hidden.size(-1))
        return _widen(self.last(self.norm(hidden), mask, of_last), x.size(-1))


def _widen(x: Tensor, size: int) -> Tensor:
    return F.pad(x, (0, size - x.size(-1)))


class EvolvedEncoderLayer(nn.Module):
    """A gated linear unit, convolutions in two branches, then the layer of the Transformer."""

    def __init__(self, parts: Parts, *, d_model: int, eps: float) -> None:
        super().__init__()
        self.gate, self.gate_residual = nn.Linear(d_model, 2 * d_model), parts.residual()
        self.convolution = Branches(
            Dense(d_model, 4 * d_model, 1),
            Dense(d_model, d_model // 2, 3),
            Separable(4 * d_model, d_model // 2, 9),
            activation=F.relu,
            norm=nn.LayerNorm(4 * d_model, eps=eps),
        )
        self.convolution_residual = parts.residual()
        self.rest = EncoderLayer(parts)

    def forward(self, x: Tensor, mask: Tensor, position: Position) -> Tensor:
        """Map (B, S, D) to (B, S, D); mask (B, 1, 1, S) is True at real tokens."""
        x = self.gate_residual(x, lambda h: F.glu(self.gate(h), dim=-1))
        x = self.convolution_residual(x, lambda h: self.convolution(h, mask, [NO_CACHE] * 3))
        return cast(Tensor, self.rest(x, mask, position))


class TwiceTheHeads(nn.Module):
    """Self-attention with twice as many heads: that of two modules, added up. Both have the same position scheme."""

    def __init__(self, attention: Factory) -> None:
        super().__init__()
        self.first, self.second = attention(is_cross=False), attention(is_cross=False)

    def start(self) -> "TwoCaches":
        """Create the empty caches of a decoder layer."""
        return TwoCaches(self.first.start(), self.second.start())

    def forward(self, x: Tensor, context: Tensor, mask: Tensor, position: Position, cache: "TwoCaches") -> Tensor:
        """Attend from `x` to `context`; arguments as in `MultiHeadAttention`."""
        first: Tensor = self.first(x, context, mask, position, cache.first)
        return first + self.second(x, context, mask, position, cache.second)


@dataclass
class TwoCaches:
    """The caches of two attentions."""

    first: Cache
    second: Cache

    def reorder(self, rows: Tensor) -> None:
        """Keep `rows` (R',) of the batch, in that order; a row may be repeated."""
        self.first.reorder(rows)
        self.second.reorder(rows)


@dataclass
class EvolvedCache:
    """The caches of one decoder layer."""

    attention: LayerCache
    convolutions: list[Cache]
    rest: LayerCache

    def reorder(self, rows: Tensor, sentences: Tensor | None) -> None:
        """Keep `rows` (R',), and of the source `sentences` (A',), each in that order; None: all sentences."""
        self.attention.reorder(rows, sentences)
        self.rest.reorder(rows, sentences)
        for cache in self.convolutions:
            cache.reorder(rows)


class EvolvedCausalLayer(nn.Module):
    """Masked self-attention with twice the heads, convolutions in two branches, then the layer of the Transformer."""

    attending: ClassVar[type[ParallelCausalLayer | ParallelDecoderLayer]] = ParallelCausalLayer
    plain: ClassVar[type[CausalLayer | DecoderLayer]] = CausalLayer

    def __init__(self, parts: Parts, *, d_model: int, eps: float) -> None:
        super().__init__()

        def attention(is_cross: bool) -> nn.Module:
            return parts.attention(is_cross=True) if is_cross else TwiceTheHeads(parts.attention)

        self.attention = self.attending(replace(parts, attention=attention, feedforward=NoFeedForward))
        self.convolution = Branches(
            Separable(d_model, 2 * d_model, 11),
            Separable(d_model, d_model // 2, 7),
            Separable(2 * d_model, d_model, 7),
            activation=nn.Identity(),
            norm=nn.LayerNorm(2 * d_model, eps=eps),
        )
        self.convolution_residual = parts.residual()
        self.rest = self.plain(parts)

    def start(self) -> EvolvedCache:
        """Create the empty caches of this layer."""
        return EvolvedCache(self.attention.start(), self.convolution.start(), self.rest.start())

    def forward(self, x: Tensor, mask: Tensor, position: Position, source: SourceRows, cache: EvolvedCache) -> Tensor:
        """Map (B, T, D) to (B, T, D); arguments as in `DecoderLayer`."""
        x = self.attention(x, mask, position, source, cache.attention)
        x = self.convolution_residual(x, lambda h: self.convolution(h, mask, cache.convolutions))
        return cast(Tensor, self.rest(x, mask, position, source, cache.rest))


class EvolvedDecoderLayer(EvolvedCausalLayer):
    """The same with attention to the encoder: beside the first self-attention, and behind the second."""

    attending, plain = ParallelDecoderLayer, DecoderLayer


class EvolvedEncoder(TransformerEncoder):
    """A stack of layers of a gated linear unit, convolutions, self-attention and feed-forward (So et al. 2019).

    Args:
        parts: factories of what its layers are made of.
        n_layers: N.
        d_model: D.
        eps: of the norm among the convolutions.
    """

    def __init__(self, parts: Parts, *, n_layers: int, d_model: int, eps: float) -> None:
        self.layer = partial(EvolvedEncoderLayer, d_model=d_model, eps=eps)
        super().__init__(parts, n_layers=n_layers)


class EvolvedDecoder(TransformerDecoder):
    """A stack of layers of attention, convolutions, attention again and feed-forward; arguments as in `EvolvedEncoder`.

    Without an encoder, nothing attends to it.
    """

    def __init__(self, parts: Parts, reads: bool, *, n_layers: int, d_model: int, eps: float) -> None:
        self.reading_layer = partial(EvolvedDecoderLayer, d_model=d_model, eps=eps)
        self.causal_layer = partial(EvolvedCausalLayer, d_model=d_model, eps=eps)
        super().__init__(parts, reads, n_layers=n_layers)
