"""Parameters, operations and memory of a model from its shapes: it is built on the meta device, without memory.

The cost of a Transformer is computed by formula, that of any other model is counted. Floating-point operations are
those of matrix products only, two for each multiplication with addition: a matrix of n entries costs 2 n for each
position that it multiplies; attention 2 (K + V) for each pair of a query and a key, in each head. Masked pairs are
computed too. A backward pass takes twice the operations of a forward pass.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, cast

from torch import nn
from torch.nn import functional as F

from etude.model.attention import LocalAttention, MultiHeadAttention
from etude.model.embedding import (
    AdaptiveInput,
    AdaptiveSoftmax,
    Factorized,
    FactorizedShared,
    MixtureOfSoftmaxes,
    WordTable,
)
from etude.model.encoder_decoder import EncoderDecoder
from etude.model.experts import MixtureOfExperts
from etude.model.feedforward import InSomeLayers, NormFormerFeedForward
from etude.model.position import Position
from etude.model.residual import GatedPreNorm, HyperConnection, LayerScale, PeriNorm, ReZeroPreNorm, Sandwich
from etude.model.scale import Cosine
from etude.model.transformer import TransformerDecoder, TransformerEncoder
from etude.store.own_parts import blame
from etude.tasks import build
from etude.tasks.counted import CountedSize

Config = dict[str, Any]

_COUNTED = (
    AdaptiveInput,
    AdaptiveSoftmax,
    Cosine,
    Factorized,
    FactorizedShared,
    GatedPreNorm,
    HyperConnection,
    InSomeLayers,
    LayerScale,
    MixtureOfExperts,
    MixtureOfSoftmaxes,
    NormFormerFeedForward,
    PeriNorm,
    ReZeroPreNorm,
    Sandwich,
)  # parts that keep or multiply more
_BY_FORMULA = (EncoderDecoder, TransformerEncoder, TransformerDecoder, MultiHeadAttention, LocalAttention)
NUMBER = 4  # bytes of a number in float32
HALF = 2  # bytes of a number in half precision


@dataclass(frozen=True)
class TransformerSize:
    """The size of a Transformer, and its cost for one sentence of `source` and `target` tokens, by formula."""

    parameters: int
    source_weights: (
        int  # matrix entries that multiply each source position: the encoder's, and cross-attention W_K, W_V
    )
    target_weights: int  # matrix entries that multiply each target position, with the V x D of the output
    inner: int  # numbers kept between the matrices of one feed-forward network, for each position
    encoder_layers: int
    decoder_layers: int
    d_model: int
    heads: int
    d_k: int
    d_v: int
    dropout: bool
    attention_dropout: bool
    source_position: Position  # the position schemes, whose `score_flops` are counted
    target_position: Position
    takes_cost: bool = True  # whether logits are computed in chunks; see `etude.model.chunks`

    def training_flops(self, source: int, target: int) -> int:
        """Count the operations of a forward and a backward pass."""
        once = self._encoder_flops(source) + 2 * target * self.target_weights
        attention = self._attention_flops(target, target) + self._attention_flops(target, source)
        bias = self._bias_flops(self.target_position, target, target)
        return 3 * (once + self.decoder_layers * (attention + bias))

    def decoding_flops(self, source: int, target: int, beam: int) -> int:
        """Count the operations of decoding with caches: the first step has one hypothesis, every later one `beam`."""
        total = self._encoder_flops(source)
        for step in range(1, target + 1):
            self_attn = self._attention_flops(1, step) + self._bias_flops(self.target_position, 1, step)
            layer = self_attn + self._attention_flops(1, source)
            one = 2 * self.target_weights + self.decoder_layers * layer
            total += one if step == 1 else beam * one
        return total

    def saved_bytes(self, source: int, target: int, *, half: bool = False) -> float:
        """Count the bytes kept for the backward pass, without the logits.

        Numbers are float32; with `half`, the factors of matrix products are in half precision. A product keeps its two
        factors, a norm its input, a softmax its output, a dropout its mask.
        """
        factor = HALF if half else NUMBER
        residual = (NUMBER + self.dropout) * self.d_model  # a norm's input and a mask of bytes, for each sub-layer
        query_side = factor * (self.d_model + self.heads * (self.d_k + self.d_v))  # input, queries, weighted sums
        key_side = factor * self.heads * (self.d_k + self.d_v)  # keys and values
        weights = self.heads * (NUMBER + (NUMBER + 1) * self.attention_dropout)  # for each pair of query and key
        feedforward = factor * (self.d_model + self.inner) + residual
        encoder = source * (residual + query_side + key_side + feedforward) + weights * source**2
        self_attn = target * (residual + query_side + key_side) + weights * target**2
        cross_attn = target * (residual + query_side) + source * key_side + weights * target * source
        decoder = self_attn + cross_attn + target * feedforward
        return self.encoder_layers * encoder + self.decoder_layers * decoder

    def _encoder_flops(self, source: int) -> int:
        """Count the operations of the encoder, and of cross-attention's keys and values."""
        attention = self._attention_flops(source, source) + self._bias_flops(self.source_position, source, source)
        return 2 * source * self.source_weights + self.encoder_layers * attention

    def _attention_flops(self, queries: int, keys: int) -> int:
        """Count the operations of scores and weighted sums in one layer."""
        return 2 * self.heads * (self.d_k + self.d_v) * queries * keys

    def _bias_flops(self, position: Position, queries: int, keys: int) -> int:
        return self.heads * position.score_flops(queries, keys, self.d_k)


Size = TransformerSize | CountedSize


def measure_size(config: Config) -> Size:
    """Measure the model of a resolved config.

    Raises:
        UserError: a part refuses its sizes.
    """
    if not is_ours(config):
        return CountedSize(
            build.shapes(config),
            lambda: build.model(config, config["tokenizer"]["vocab_size"]).to(build.device_of_training(config)),
            lambda error: blame(error, config),
        )
    node, model = config["model"], build_shallow(config)
    stacks = cast(TransformerEncoder, model.encoder), cast(TransformerDecoder, model.decoder)
    encoder, decoder = (stack.layers[0] for stack in stacks)
    n_encoder, n_decoder = (node[side]["n_layers"] for side in ("encoder", "decoder"))
    memory = sum(_count_entries(decoder.get_submodule(f"cross_attention.{part}")) for part in ("k_proj", "v_proj"))
    further = (n_encoder - 1) * _count_layer(stacks[0]) + (n_decoder - 1) * _count_layer(stacks[1])
    attention = node["attention"]
    return TransformerSize(
        _count_parameters(model) + further,
        n_encoder * _count_entries(encoder) + n_decoder * memory,
        n_decoder * (_count_entries(decoder) - memory) + cast(WordTable, model.embedding.output_table).weight.numel(),
        inner=_count_inner(encoder),
        encoder_layers=n_encoder,
        decoder_layers=n_decoder,
        d_model=node["d_model"],
        heads=attention["heads"],
        d_k=attention["d_k"],
        d_v=attention["d_v"],
        dropout=bool(node["dropout"]),
        attention_dropout=bool(node["attention_dropout"]),
        source_position=stacks[0].position,
        target_position=stacks[1].position,
    )


def is_ours(config: Config) -> bool:
    """Return whether the formula holds: étude's Transformer, plain attention, and no part of the user's own.

    A part of étude multiplies each position once by each of its linear layers, and by nothing else, but for those in
    `_COUNTED`; a part of the user's own may use a layer twice, or a matrix of its own.
    """
    node = config["model"]
    parts = (part.get("_target_") for part in node.values() if isinstance(part, dict))
    others = _names(_COUNTED)
    if not all(str(target or "etude.").startswith(("etude.", "torch.")) and target not in others for target in parts):
        return False
    targets = {
        node["_target_"],
        *((node.get(part) or {}).get("_target_") for part in ("encoder", "decoder", "attention")),
    }
    return targets <= _names(_BY_FORMULA)


def _names(kinds: Iterable[type]) -> set[str]:
    return {f"{kind.__module__}.{kind.__qualname__}" for kind in kinds}


def build_shallow(config: Config) -> EncoderDecoder:
    """Build the model with one layer per stack on the meta device; all layers of a stack have the same size."""
    node = config["model"]
    return build.shapes(
        config | {"model": node | {side: node[side] | {"n_layers": 1} for side in ("encoder", "decoder")}}
    )


def _count_layer(stack: TransformerEncoder | TransformerDecoder) -> int:
    """Count the parameters of one layer, with those that the position scheme has for each layer."""
    position = stack.position.at_layer(0)
    per_layer = _count_parameters(position) if position is not stack.position else 0
    return _count_parameters(stack.layers[0]) + per_layer


def _count_parameters(module: nn.Module) -> int:
    return sum(weight.numel() for weight in module.parameters())


def _count_inner(layer: nn.Module) -> int:
    """Count the numbers that a feed-forward network keeps per position after its first matrices.

    These are the outputs of all matrices but the last, and in a gated network the activated gate and its product too.
    Of ReLU only the output is kept, which the last matrix keeps anyway; of any other activation the input as well.
    """
    network = layer.get_submodule("feedforward")
    matrices = [part for part in network.modules() if isinstance(part, nn.Linear)]
    further = 2 if len(matrices) > 2 else getattr(network, "activation", None) is not F.relu
    return sum(matrix.out_features for matrix in matrices[:-1]) + sum(m.in_features for m in matrices[-1:]) * further


def _count_entries(module: nn.Module) -> int:
    """Count the entries of all matrices of linear layers."""
    return sum(part.weight.numel() for part in module.modules() if isinstance(part, nn.Linear))
