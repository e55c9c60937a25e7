"""Encoder and decoder layers of the Transformer (section 3.1). A layer never asks which variation it holds."""

from dataclasses import dataclass

from torch import Tensor, nn

from etude.model.cache import NO_CACHE, Cache
from etude.model.parts import Parts
from etude.model.position import NO_POSITION, Position
from etude.model.state import SourceRows


class EncoderLayer(nn.Module):
    """Self-attention, then feed-forward."""

    def __init__(self, parts: Parts) -> None:
        super().__init__()
        self.attention, self.attention_residual = parts.attention(is_cross=False), parts.residual()
        self.feedforward, self.feedforward_residual = parts.feedforward(), parts.residual()

    def attend(self, x: Tensor, mask: Tensor, position: Position) -> Tensor:
        """Map (B, S, D) to (B, S, D), the sum with self-attention; mask (B, 1, 1, S) is True at real tokens."""
        out: Tensor = self.attention_residual(x, lambda h: self.attention(h, h, mask, position, NO_CACHE))
        return out

    def feed(self, x: Tensor) -> Tensor:
        """Map (B, S, D) to (B, S, D), the sum with the feed-forward network."""
        out: Tensor = self.feedforward_residual(x, self.feedforward)
        return out

    def forward(self, x: Tensor, mask: Tensor, position: Position) -> Tensor:
        """Map (B, S, D) to (B, S, D); mask (B, 1, 1, S) is True at real tokens."""
        return self.feed(self.attend(x, mask, position))


@dataclass
class LayerCache:
    """The caches of one decoder layer."""

    self_attn: Cache
    cross_attn: Cache

    def reorder(self, rows: Tensor, sentences: Tensor | None) -> None:
        """Keep `rows` (R',), and of the source `sentences` (A',), each in that order; None: all sentences."""
        self.self_attn.reorder(rows)
        if sentences is not None:
            self.cross_attn.reorder(sentences)


def cross_attend(attention: nn.Module, read: nn.Module, x: Tensor, source: SourceRows, cache: Cache) -> Tensor:
    """Attend from target positions (B, T, D) to what is read of the encoder's output; returns (B, T, D)."""
    out = attention(source.fold(x), read(source.memory), source.mask[:, None, None, :], NO_POSITION, cache)
    return source.unfold(out)


class DecoderLayer(nn.Module):
    """Masked self-attention, attention to the encoder's output, then feed-forward."""

    def __init__(self, parts: Parts) -> None:
        super().__init__()
        self.attention, self.attention_residual = parts.attention(is_cross=False), parts.residual()
        self.cross_attention, self.cross_attention_residual = parts.attention(is_cross=True), parts.residual()
        self.read = parts.read()
        self.feedforward, self.feedforward_residual = parts.feedforward(), parts.residual()

    def start(self) -> LayerCache:
        """Create the empty caches of this layer."""
        return LayerCache(self.attention.start(), self.cross_attention.start())

    def forward(self, x: Tensor, mask: Tensor, position: Position, source: SourceRows, cache: LayerCache) -> Tensor:
        """Map (B, T, D) to (B, T, D).

        Args:
            x: (B, T, D), the new target positions.
            mask: (T, positions so far), True where attention is allowed.
            position: the decoder's position scheme.
            source: the encoder's output, and which of its sentences each of the B rows translates.
            cache: keys and values of the earlier target positions and of the source.
        """
        x = self.attention_residual(x, lambda h: self.attention(h, h, mask, position, cache.self_attn))
        cross, read = self.cross_attention, self.read
        x = self.cross_attention_residual(x, lambda h: cross_attend(cross, read, h, source, cache.cross_attn))
        return self.feedforward_residual(x, self.feedforward)


class CausalLayer(EncoderLayer):
    """Masked self-attention, then feed-forward: a decoder layer for models without encoder (Radford et al. 2018)."""

    def start(self) -> LayerCache:
        """Create the empty caches of this layer."""
        return LayerCache(self.attention.start(), NO_CACHE)

    def forward(  # type: ignore[override]
        self, x: Tensor, mask: Tensor, position: Position, source: SourceRows, cache: LayerCache
    ) -> Tensor:
        """Map (B, T, D) to (B, T, D); arguments as in `DecoderLayer`, and `source` is not used."""
        x = self.attention_residual(x, lambda h: self.attention(h, h, mask, position, cache.self_attn))
        return self.feedforward_residual(x, self.feedforward)


class ParallelEncoderLayer(nn.Module):
    """Self-attention and feed-forward of the same input, added up (Chowdhery et al. 2022, section 2)."""

    def __init__(self, parts: Parts) -> None:
        super().__init__()
        self.attention, self.feedforward = parts.attention(is_cross=False), parts.feedforward()
        self.residual = parts.residual()

    def forward(self, x: Tensor, mask: Tensor, position: Position) -> Tensor:
        """Map (B, S, D) to (B, S, D); mask (B, 1, 1, S) is True at real tokens."""
        out: Tensor = self.residual(x, lambda h: self.attention(h, h, mask, position, NO_CACHE) + self.feedforward(h))
        return out


class ParallelCausalLayer(ParallelEncoderLayer):
    """Masked self-attention and feed-forward of the same input, added up."""

    def start(self) -> LayerCache:
        """Create the empty caches of this layer."""
        return LayerCache(self.attention.start(), NO_CACHE)

    def forward(  # type: ignore[override]
        self, x: Tensor, mask: Tensor, position: Position, source: SourceRows, cache: LayerCache
    ) -> Tensor:
        """Map (B, T, D) to (B, T, D); arguments as in `DecoderLayer`, and `source` is not used."""
        out: Tensor = self.residual(
            x, lambda h: self.attention(h, h, mask, position, cache.self_attn) + self.feedforward(h)
        )
        return out


class ParallelDecoderLayer(ParallelEncoderLayer):
    """Masked self-attention, attention to the encoder's output and feed-forward of the same input, added up."""

    def __init__(self, parts: Parts) -> None:
        super().__init__(parts)
        self.cross_attention, self.read = parts.attention(is_cross=True), parts.read()

    def start(self) -> LayerCache:
        """Create the empty caches of this layer."""
        return LayerCache(self.attention.start(), self.cross_attention.start())

    def forward(  # type: ignore[override]
        self, x: Tensor, mask: Tensor, position: Position, source: SourceRows, cache: LayerCache
    ) -> Tensor:
        """Map (B, T, D) to (B, T, D); arguments as in `DecoderLayer`."""
        out: Tensor = self.residual(
            x,
            lambda h: (
                self.attention(h, h, mask, position, cache.self_attn)
                + cross_attend(self.cross_attention, self.read, h, source, cache.cross_attn)
                + self.feedforward(h)
            ),
        )
        return out
