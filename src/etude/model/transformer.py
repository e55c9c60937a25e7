"""The encoder-decoder Transformer of "Attention Is All You Need" (arXiv:1706.03762), made of exchangeable parts."""

from collections.abc import Callable

import torch
from torch import Tensor, nn

from etude.model.block import NO_LAYER_CACHE, DecoderLayer, EncoderLayer, Factory, LayerCache
from etude.model.dropout import Dropout
from etude.model.embedding import Embedding
from etude.model.position import Position


class Transformer(nn.Module):
    """Figure 1 of the paper. The parts come as factories, so that every layer gets its own.

    Args:
        vocab_size: V, subwords shared by source and target.
        n_layers: N, layers in the encoder and again in the decoder.
        dropout: P_drop on the sum of embedding and position (section 5.4).
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
        n_layers: int,
        dropout: float,
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
        parts: dict[str, Factory] = {
            "attention": lambda is_cross: attention(scale(), backend(), is_cross),
            "feedforward": feedforward,
            "residual": lambda: residual(norm),
        }
        self.embedding: Embedding = tying(vocab_size)
        self.dropout = Dropout(dropout)
        self.source_position: Position = position(False)
        self.target_position: Position = position(True)
        self.encoder = nn.ModuleList(EncoderLayer(**parts) for _ in range(n_layers))
        self.decoder = nn.ModuleList(DecoderLayer(**parts) for _ in range(n_layers))
        self.encoder_norm: nn.Module = residual(norm).final_norm()
        self.decoder_norm: nn.Module = residual(norm).final_norm()
        init(self, seed)

    def forward(self, source: Tensor, source_mask: Tensor, target_in: Tensor) -> Tensor:
        """Logits of the next target token at every position, given the true ones before it.

        Args:
            source: (B, S) subwords.
            source_mask: (B, S), True at real tokens.
            target_in: (B, T) subwords, shifted right. Padding stands at the end, where no real position looks.

        Returns:
            (B, T, V).
        """
        return self.embedding.logits(self.hidden(source, source_mask, target_in))

    def hidden(self, source: Tensor, source_mask: Tensor, target_in: Tensor) -> Tensor:
        """As `forward`, before the projection to logits: (B, T, D)."""
        memory = self.encode(source, source_mask)
        return self._decode(target_in, memory, source_mask, [NO_LAYER_CACHE] * len(self.decoder))

    def encode(self, source: Tensor, source_mask: Tensor) -> Tensor:
        """(B, S) and its mask to the encoder's output (B, S, D)."""
        x = self.dropout(self.source_position.add_to_embedding(self.embedding.source(source), 0))
        mask = source_mask[:, None, None, :]
        for n, layer in enumerate(self.encoder):
            x = layer(x, mask, self.source_position.at_layer(n))
        return self.encoder_norm(x)

    def start(self, source: Tensor, source_mask: Tensor) -> "DecoderState":
        """Encode (B, S) and its mask; nothing is decoded yet."""
        return DecoderState(self.encode(source, source_mask), source_mask, len(self.decoder))

    def step(self, tokens: Tensor, state: "DecoderState") -> Tensor:
        """Feed one more token (R,) per row of `state`, which remembers it; logits (R, V) of the one after."""
        x = self._decode(tokens[:, None], state.memory, state.source_mask, state.caches)
        return self.embedding.logits(x[:, 0])

    def _decode(self, tokens: Tensor, memory: Tensor, source_mask: Tensor, caches: list[LayerCache]) -> Tensor:
        """New target tokens (B, T) after those that the caches remember, to (B, T, D)."""
        start, length = caches[0].self_attn.length, tokens.size(1)
        x = self.dropout(self.target_position.add_to_embedding(self.embedding.target(tokens), start))
        mask = torch.ones(length, start + length, dtype=torch.bool, device=tokens.device).tril(start)
        memory_mask = source_mask[:, None, None, :]
        for n, (layer, cache) in enumerate(zip(self.decoder, caches, strict=True)):
            x = layer(x, mask, self.target_position.at_layer(n), memory, memory_mask, cache)
        return self.decoder_norm(x)


class DecoderState:
    """Where the step-by-step decoding of a batch stands: R rows, each a source with the target tokens fed so far."""

    def __init__(self, memory: Tensor, source_mask: Tensor, n_layers: int) -> None:
        self.memory, self.source_mask = memory, source_mask
        self._sentence = torch.arange(memory.size(0), device=memory.device)  # of each row
        self.caches = [LayerCache.empty() for _ in range(n_layers)]

    def reorder(self, rows: Tensor) -> None:
        """Keep `rows` (R',) in that order, in place; a row may be repeated (beams) or left out (finished sentences)."""
        sentence = self._sentence[rows]
        same = torch.equal(sentence, self._sentence)  # beams of one sentence change places: their source stays
        self._sentence = sentence
        if not same:
            self.memory, self.source_mask = self.memory.index_select(0, rows), self.source_mask.index_select(0, rows)
        for cache in self.caches:
            cache.self_attn.reorder(rows)
            if not same:
                cache.cross_attn.reorder(rows)
