"""An encoder and a decoder between word embeddings: the shape that the Transformer shares with what came before it."""

from collections.abc import Callable
from typing import Any, Protocol

from torch import Tensor, nn

from etude.model.embedding import Embedding
from etude.model.parts import Factory, Parts
from etude.model.pieces import Cost


class State(Protocol):
    """Where the decoding of a batch stands: R rows, each a source with the target tokens fed so far."""

    def reorder(self, rows: Tensor) -> None:
        """Keep `rows` (R',) in that order, in place; a row may be repeated (beams) or left out (finished sentences)."""


class Encoder(Protocol):
    """What a model asks of its encoder, a module."""

    is_read: bool  # whether there is anything for a decoder to look at

    def __call__(self, x: Tensor, mask: Tensor) -> Tensor:
        """Embeddings (B, S, D) and their mask (B, S), True at real tokens, to (B, S, D)."""


class Decoder(Protocol):
    """What a model asks of its decoder, a module."""

    def start(self, memory: Tensor, mask: Tensor) -> State:
        """Nothing is decoded yet of the sentences with this encoder's output (B, S, D) and mask (B, S)."""

    def __call__(self, x: Tensor, state: Any) -> Tensor:
        """Embeddings (B, T, D) of the tokens after those that `state` remembers, to (B, T, D)."""


class EncoderDecoder(nn.Module):
    """Embeddings, an encoder, a decoder, logits. With both of `model.transformer`, Figure 1 of the paper.

    The parts come as factories, so that every layer gets its own.

    Args:
        vocab_size: V, subwords shared by source and target.
        dropout: P_drop on the sum of embedding and position (section 5.4).
        encoder: called with `Parts`; gives an `Encoder`.
        decoder: called with `Parts` and whether the encoder is read; gives a `Decoder`.
        position: called with `causal`, once for the encoder and once for the decoder.
        attention: called with a scale, a backend, and whether it looks from the decoder at the encoder.
        scale: how attention scores are scaled.
        backend: how attention is computed.
        norm: a norm of D-vectors.
        residual: called with `norm`; wraps a sub-layer; its `final_norm()` stands after a stack.
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
        self.decoder: Decoder = decoder(parts, self.encoder.is_read)
        if not self.encoder.is_read:
            self.embedding.leave_out_source()
        init(self, seed)

    def forward(self, source: Tensor, source_mask: Tensor, target_in: Tensor, cost: Cost | None = None) -> Tensor:
        """Logits of the next target token at every position, given the true ones before it; or what they cost.

        Args:
            source: (B, S) subwords.
            source_mask: (B, S), True at real tokens.
            target_in: (B, T) subwords, shifted right. Padding stands at the end, where no real position looks.
            cost: of the logits, if these are wanted for nothing else.

        Returns:
            (B, T, V), or the sum of what they cost.
        """
        return self.embedding.read_out(self.hidden(source, source_mask, target_in), cost)

    def hidden(self, source: Tensor, source_mask: Tensor, target_in: Tensor) -> Tensor:
        """As `forward`, before the projection to logits: (B, T, D)."""
        return self._decode(target_in, self.start(source, source_mask))

    def encode(self, source: Tensor, source_mask: Tensor) -> Tensor:
        """(B, S) and its mask to the encoder's output (B, S, D)."""
        return self.encoder(self.embedding.source(source), source_mask)

    def start(self, source: Tensor, source_mask: Tensor) -> State:
        """Encode (B, S) and its mask; nothing is decoded yet."""
        return self.decoder.start(self.encode(source, source_mask), source_mask)

    def step(self, tokens: Tensor, state: State) -> Tensor:
        """Feed one more token (R,) per row of `state`, which remembers it; logits (R, V) of the one after."""
        return self.embedding.logits(self._decode(tokens[:, None], state)[:, 0])

    def _decode(self, tokens: Tensor, state: State) -> Tensor:
        """New target tokens (B, T) after those that the state remembers, to (B, T, D)."""
        return self.decoder(self.embedding.target(tokens), state)
