"""Encoder-only models, which predict logits at the positions of their input tokens (Devlin et al. 2019)."""

from collections.abc import Callable

from torch import Tensor, nn

from etude.model.chunks import Cost
from etude.model.embedding import Embedding
from etude.model.encoder_decoder import Encoder
from etude.model.parts import Factory, Parts


class EncoderOnly(nn.Module):
    """Embeddings, encoder and projection to logits. The parts are factories, as those of `EncoderDecoder`.

    Args:
        vocab_size: V.
        dropout: P_drop on the sum of embedding and position (section 5.4).
        encoder: called with `Parts`; returns an `Encoder`.
        position: called with `causal`.
        attention: called with a scale, a backend, and whether it attends from a decoder to the encoder.
        scale: how attention scores are scaled.
        backend: how attention is computed.
        norm: a norm of D-vectors.
        residual: called with `norm`; wraps a sub-layer; its `final_norm()` follows the last layer.
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
        self.read: nn.Module = getattr(self.encoder, "reader", nn.Identity)()
        init(self, seed)

    def forward(self, source: Tensor, source_mask: Tensor, target_in: Tensor, cost: Cost | None = None) -> Tensor:
        """Compute logits at the first T source positions, the only ones with a target, or their cost.

        Args:
            source: (B, S) tokens.
            source_mask: (B, S), True at real tokens.
            target_in: (B, T), T at most S; only its length is used.
            cost: a function of the logits; its sum is returned, and the logits of the whole batch are not kept.

        Returns:
            Logits (B, T, V), or the sum of `cost`.
        """
        return self.embedding.read_out(self.hidden(source, source_mask, target_in), cost)

    def hidden(self, source: Tensor, source_mask: Tensor, target_in: Tensor) -> Tensor:
        """Compute the encoder's output (B, T, D), which `forward` projects to logits."""
        out: Tensor = self.read(self.encoder(self.embedding.source(source), source_mask))
        return out[:, : target_in.size(1)]
