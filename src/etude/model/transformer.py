"""Encoder and decoder of "Attention Is All You Need" (arXiv:1706.03762, section 3.1), made of exchangeable parts."""

from typing import ClassVar, cast

from torch import Tensor, nn

from etude.model.block import (
    CausalLayer,
    DecoderLayer,
    EncoderLayer,
    LayerCache,
    ParallelCausalLayer,
    ParallelDecoderLayer,
    ParallelEncoderLayer,
)
from etude.model.dropout import Dropout
from etude.model.mask import causal_mask
from etude.model.numbered import number_layers
from etude.model.parts import Parts
from etude.model.position import Position
from etude.model.state import SourceRows


class TransformerEncoder(nn.Module):
    """A stack of layers of self-attention and feed-forward.

    Args:
        parts: factories of what its layers are made of.
        n_layers: N.
    """

    is_read = True
    layer: ClassVar[type[EncoderLayer | ParallelEncoderLayer]] = EncoderLayer

    def __init__(self, parts: Parts, *, n_layers: int) -> None:
        super().__init__()
        self.dropout, self.initial = Dropout(parts.dropout), parts.begin()
        self.position: Position = parts.position(False).for_layers(n_layers)
        self.layers = nn.ModuleList(self.layer(parts) for _ in range(n_layers))
        number_layers(self.layers)
        self.final_norm: nn.Module = parts.residual().final_norm()

    def forward(self, x: Tensor, mask: Tensor) -> Tensor:
        """Encode embeddings (B, S, D) with their mask (B, S), True at real tokens; returns (B, S, D)."""
        x = self.initial(self.dropout(self.position.add_to_embedding(x, 0)))
        for n, layer in enumerate(self.layers):
            x = layer(x, mask[:, None, None, :], self.position.at_layer(n))
        out: Tensor = self.final_norm(x)
        return out


class TransformerDecoder(nn.Module):
    """A stack of layers of masked self-attention, attention to the encoder if there is one, and feed-forward.

    Args:
        parts: factories of what its layers are made of.
        reads: whether there is an encoder to attend to.
        n_layers: N.
    """

    reading_layer: ClassVar[type[DecoderLayer | ParallelDecoderLayer]] = DecoderLayer
    causal_layer: ClassVar[type[CausalLayer | ParallelCausalLayer]] = CausalLayer

    def __init__(self, parts: Parts, reads: bool, *, n_layers: int) -> None:
        super().__init__()
        layer = self.reading_layer if reads else self.causal_layer
        self.dropout, self.initial = Dropout(parts.dropout), parts.begin()
        self.position: Position = parts.position(True).for_layers(n_layers)
        self.layers = nn.ModuleList(layer(parts) for _ in range(n_layers))
        number_layers(self.layers)
        self.final_norm: nn.Module = parts.residual().final_norm()

    def start(self, memory: Tensor, mask: Tensor) -> "TransformerState":
        """Begin decoding from the encoder's output (B, S, D) and its mask (B, S)."""
        return TransformerState(memory, mask, [cast(DecoderLayer, layer).start() for layer in self.layers])

    def forward(self, x: Tensor, state: "TransformerState") -> Tensor:
        """Decode embeddings (B, T, D) of the tokens that follow those in `state`, and add them to it; (B, T, D)."""
        start, length = state.length, x.size(1)
        x = self.initial(self.dropout(self.position.add_to_embedding(x, start)))
        mask = causal_mask(length, start, x.device)
        for n, (layer, cache) in enumerate(zip(self.layers, state.caches, strict=True)):
            x = layer(x, mask, self.position.at_layer(n), state.source, cache)
        state.length += length
        out: Tensor = self.final_norm(x)
        return out


class ParallelEncoder(TransformerEncoder):
    """A stack whose layers compute self-attention and feed-forward from the same input, side by side."""

    layer = ParallelEncoderLayer


class ParallelDecoder(TransformerDecoder):
    """A stack whose layers compute attention and feed-forward from the same input, side by side."""

    reading_layer, causal_layer = ParallelDecoderLayer, ParallelCausalLayer


class TransformerState:
    """State of decoding R rows, each a source sentence with the target tokens decoded so far."""

    def __init__(self, memory: Tensor, mask: Tensor, caches: list[LayerCache]) -> None:
        self.source, self.caches = SourceRows(memory, mask), caches
        self.length = 0  # target tokens decoded so far

    def reorder(self, rows: Tensor) -> None:
        """Keep `rows` (R',) in that order, in place; a row may be repeated (beams) or left out (finished sentences)."""
        sentences = self.source.reorder(rows)
        for cache in self.caches:
            cache.self_attn.reorder(rows)
            if sentences is not None:
                cache.cross_attn.reorder(sentences)
