"""One layer of the encoder and one of the decoder (section 3.1). None asks which variation it holds."""

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

    def forward(self, x: Tensor, mask: Tensor, position: Position) -> Tensor:
        """(B, S, D) to (B, S, D); mask (B, 1, 1, S) is True at real tokens."""
        x = self.attention_residual(x, lambda h: self.attention(h, h, mask, position, NO_CACHE))
        return self.feedforward_residual(x, self.feedforward)


@dataclass
class LayerCache:
    """What one decoder layer remembers of the target tokens fed so far."""

    self_attn: Cache
    cross_attn: Cache


def look(attention: nn.Module, x: Tensor, source: SourceRows, cache: Cache) -> Tensor:
    """What (B, T, D) reads of the source by an attention to it."""
    read = attention(source.fold(x), source.memory, source.mask[:, None, None, :], NO_POSITION, cache)
    return source.unfold(read)


class DecoderLayer(nn.Module):
    """Masked self-attention, attention to the encoder's output, then feed-forward."""

    def __init__(self, parts: Parts) -> None:
        super().__init__()
        self.attention, self.attention_residual = parts.attention(is_cross=False), parts.residual()
        self.cross_attention, self.cross_attention_residual = parts.attention(is_cross=True), parts.residual()
        self.feedforward, self.feedforward_residual = parts.feedforward(), parts.residual()

    def start(self) -> LayerCache:
        """Nothing is remembered yet."""
        return LayerCache(self.attention.start(), self.cross_attention.start())

    def forward(self, x: Tensor, mask: Tensor, position: Position, source: SourceRows, cache: LayerCache) -> Tensor:
        """(B, T, D) to (B, T, D).

        Args:
            x: (B, T, D), the new target positions.
            mask: (T, positions so far), True where looking is allowed.
            position: the decoder's position scheme.
            source: the encoder's output, and which sentence of it each of the B looks at.
            cache: what is remembered of the target tokens fed so far.
        """
        x = self.attention_residual(x, lambda h: self.attention(h, h, mask, position, cache.self_attn))
        x = self.cross_attention_residual(x, lambda h: look(self.cross_attention, h, source, cache.cross_attn))
        return self.feedforward_residual(x, self.feedforward)


class CausalLayer(EncoderLayer):
    """Masked self-attention, then feed-forward: a decoder's layer where there is no encoder (Radford et al. 2018)."""

    def start(self) -> LayerCache:
        """Nothing is remembered yet."""
        return LayerCache(self.attention.start(), NO_CACHE)

    def forward(  # type: ignore[override]
        self, x: Tensor, mask: Tensor, position: Position, source: SourceRows, cache: LayerCache
    ) -> Tensor:
        """(B, T, D) to (B, T, D), as in `DecoderLayer`; nobody looks at the source."""
        x = self.attention_residual(x, lambda h: self.attention(h, h, mask, position, cache.self_attn))
        return self.feedforward_residual(x, self.feedforward)
