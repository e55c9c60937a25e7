"""An encoder whose output is read as it stands: tokens to logits at their own places (Devlin et al. 2019)."""

from collections.abc import Callable

from torch import Tensor, nn

from etude.model.embedding import Embedding
from etude.model.encoder_decoder import Encoder
from etude.model.parts import Factory, Parts
from etude.model.pieces import Cost


class EncoderOnly(nn.Module):
    """Embeddings, an encoder, logits. The parts come as factories, as `EncoderDecoder` takes them.

    Args:
        vocab_size: V.
        dropout: P_drop on the sum of embedding and position (section 5.4).
        encoder: called with `Parts`; gives an `Encoder`.
        position: called with `causal`.
        attention: called with a scale, a backend, and whether it looks from a decoder at the encoder.
        scale: how attention scores are scaled.
        backend: how attention is computed.
        norm: a norm of D-vectors.
        residual: called with `norm`; wraps a sub-layer; its `final_norm()` stands after the stack.
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
        self.embedding.leave_out_target()
        self.encoder: Encoder = encoder(parts)
        init(self, seed)

    def forward(self, source: Tensor, source_mask: Tensor, target_in: Tensor, cost: Cost | None = None) -> Tensor:
        """Logits at the first T places of the source, no other is worth the projection; or what they cost.

        Args:
            source: (B, S) subwords.
            source_mask: (B, S), True at real tokens.
            target_in: (B, T), T at most S, which says how many; its tokens are not read.
            cost: of the logits, if these are wanted for nothing else.

        Returns:
            (B, T, V), or the sum of what they cost.
        """
        return self.embedding.read_out(self.hidden(source, source_mask, target_in), cost)

    def hidden(self, source: Tensor, source_mask: Tensor, target_in: Tensor) -> Tensor:
        """As `forward`, before the projection to logits: (B, T, D)."""
        return self.encoder(self.embedding.source(source), source_mask)[:, : target_in.size(1)]
