"""One layer of the encoder and one of the decoder (section 3.1). Neither asks which variation it holds."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from torch import Tensor, nn

from etude.model.cache import NO_CACHE, CrossAttentionCache, NoCache, SelfAttentionCache
from etude.model.position import NO_POSITION, Position

Factory = Callable[..., Any]  # makes a part; every layer gets its own


class EncoderLayer(nn.Module):
    """Self-attention, then feed-forward."""

    def __init__(self, *, attention: Factory, feedforward: Factory, residual: Factory) -> None:
        super().__init__()
        self.attention, self.attention_residual = attention(is_cross=False), residual()
        self.feedforward, self.feedforward_residual = feedforward(), residual()

    def forward(self, x: Tensor, mask: Tensor, position: Position) -> Tensor:
        """(B, S, D) to (B, S, D); mask (B, 1, 1, S) is True at real tokens."""
        x = self.attention_residual(x, lambda h: self.attention(h, h, mask, position))
        return self.feedforward_residual(x, self.feedforward)


@dataclass
class LayerCache:
    """What one decoder layer remembers between decoding steps."""

    self_attn: NoCache
    cross_attn: NoCache

    @classmethod
    def empty(cls) -> "LayerCache":
        """To decode step by step."""
        return cls(SelfAttentionCache(), CrossAttentionCache())


NO_LAYER_CACHE = LayerCache(NO_CACHE, NO_CACHE)


class DecoderLayer(nn.Module):
    """Masked self-attention, attention to the encoder's output, then feed-forward."""

    def __init__(self, *, attention: Factory, feedforward: Factory, residual: Factory) -> None:
        super().__init__()
        self.attention, self.attention_residual = attention(is_cross=False), residual()
        self.cross_attention, self.cross_attention_residual = attention(is_cross=True), residual()
        self.feedforward, self.feedforward_residual = feedforward(), residual()

    def forward(
        self, x: Tensor, mask: Tensor, position: Position, memory: Tensor, memory_mask: Tensor, cache: LayerCache
    ) -> Tensor:
        """(B, T, D) to (B, T, D).

        Args:
            x: (B, T, D), the new target positions.
            mask: (T, positions so far), True where looking is allowed.
            position: the decoder's position scheme.
            memory: (B, S, D), the encoder's output.
            memory_mask: (B, 1, 1, S), True at real source tokens.
            cache: what is remembered between decoding steps.
        """
        x = self.attention_residual(x, lambda h: self.attention(h, h, mask, position, cache.self_attn))
        x = self.cross_attention_residual(
            x, lambda h: self.cross_attention(h, memory, memory_mask, NO_POSITION, cache.cross_attn)
        )
        return self.feedforward_residual(x, self.feedforward)
