"""Encoder-decoder models, Transformer or other, and the protocols of their encoder, decoder and decoding state."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any, Protocol

from torch import Tensor, nn

from etude.model.chunks import Cost
from etude.model.embedding import Embedding
from etude.model.parts import Factory, Parts


class State(Protocol):
    """State of decoding R rows, each a source sentence with the target tokens decoded so far."""

    def reorder(self, rows: Tensor) -> None:
        """Keep `rows` (R',) in that order, in place; a row may be repeated (beams) or left out (finished sentences)."""


class Encoder(Protocol):
    """The interface of an encoder, a module."""

    is_read: bool  # whether there is any output for a decoder to attend to

    def __call__(self, x: Tensor, mask: Tensor) -> Tensor:
        """Encode embeddings (B, S, D) with their mask (B, S), True at real tokens; returns (B, S, D)."""


class Decoder(Protocol):
    """The interface of a decoder, a module."""

    def start(self, memory: Tensor, mask: Tensor) -> State:
        """Begin decoding from the encoder's output (B, S, D) and its mask (B, S)."""

    def __call__(self, x: Tensor, state: Any) -> Tensor:
        """Decode embeddings (B, T, D) of the tokens that follow those in `state`, and add them to it; (B, T, D)."""


class EncoderDecoder(nn.Module):
    """Embeddings, encoder, decoder and projection to logits; with those of `model.transformer`, Figure 1 of the paper.

    The parts are factories, so that every layer gets its own.

    Args:
        vocab_size: V, subwords shared by source and target.
        dropout: P_drop on the sum of embedding and position (section 5.4).
        encoder: called with `Parts`; returns an `Encoder`; its `reader()`, if it has one, makes that with which a layer
            of the decoder reads its output; its `memory_mask(mask)`, if it has one, says which positions of its output
            are real, where these are fewer than the tokens.
        decoder: called with `Parts` and whether there is an encoder to attend to; returns a `Decoder`.
        position: called with `causal`, once for the encoder and once for the decoder.
        attention: called with a scale, a backend, and whether it attends from the decoder to the encoder.
        scale: how attention scores are scaled.
        backend: how attention is computed.
        norm: a norm of D-vectors.
        residual: called with `norm`; wraps a sub-layer; its `final_norm()` follows the last layer of a stack.
        feedforward: the position-wise network.
        tying: called with `vocab_size`; the embeddings and the projection to logits.
        init: called with the model and the seed; fills the weights.
        seed: of the run.
    """

    def __init__(
        self,
        vocab_size: int,
        *,
        dropout: float,
        encoder: Factory,
        decoder: Factory,
        position: Factory,
        attention: Factory,
        scale: Factory,
        backend: Factory,
        norm: Factory,
        residual: Factory,
        feedforward: Factory,
        tying: Factory,
        init: Callable[[nn.Module, int], None],
        seed: int,
    ) -> None:
        super().__init__()
        parts = Parts(
            position=position,
            attention=lambda is_cross: attention(scale(), backend(), is_cross),
            norm=norm,
            residual=lambda: residual(norm),
            feedforward=feedforward,
            dropout=dropout,
        )
        self.embedding: Embedding = tying(vocab_size)
        self.encoder: Encoder = encoder(parts)
        reading = replace(parts, read=getattr(self.encoder, "reader", parts.read))
        self.decoder: Decoder = decoder(reading, self.encoder.is_read)
        if not self.encoder.is_read:
            self.embedding.leave_out_source()
        init(self, seed)

    def forward(self, source: Tensor, source_mask: Tensor, target_in: Tensor, cost: Cost | None = None) -> Tensor:
        """Compute logits of the next target token at every position given the true ones before it, or their cost.

        Args:
            source: (B, S) tokens.
            source_mask: (B, S), True at real tokens.
            target_in: (B, T) tokens, shifted right. Padding is at the end, where no real position attends to it.
            cost: a function of the logits; its sum is returned, and the logits of the whole batch are not kept.

        Returns:
            Logits (B, T, V), or the sum of `cost`.
        """
        return self.embedding.read_out(self.hidden(source, source_mask, target_in), cost)

    def hidden(self, source: Tensor, source_mask: Tensor, target_in: Tensor) -> Tensor:
        """Compute the decoder's output (B, T, D), which `forward` projects to logits."""
        return self._decode(target_in, self.start(source, source_mask))

    def encode(self, source: Tensor, source_mask: Tensor) -> Tensor:
        """Encode source tokens (B, S) with their mask (B, S); returns (B, S, D)."""
        return self.encoder(self.embedding.source(source), source_mask)

    def start(self, source: Tensor, source_mask: Tensor) -> State:
        """Encode source tokens (B, S) with their mask (B, S), and begin decoding."""
        memory_mask = getattr(self.encoder, "memory_mask", _as_it_is)(source_mask)
        return self.decoder.start(self.encode(source, source_mask), memory_mask)

    def step(self, tokens: Tensor, state: State) -> Tensor:
        """Decode one more token (R,) per row, add it to `state`, and return logits (R, V) of the one after it."""
        return self.embedding.logits(self._decode(tokens[:, None], state)[:, 0])

    def _decode(self, tokens: Tensor, state: State) -> Tensor:
        """Decode target tokens (B, T) that follow those in `state`; returns (B, T, D)."""
        return self.decoder(self.embedding.target(tokens), state)


def _as_it_is(mask: Tensor) -> Tensor:
    return mask
