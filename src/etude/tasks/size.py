"""What there is in a model, from its shapes alone: it is built on the meta device, where tensors have no memory.

Of a Transformer formulas say what it costs, any other model is counted. Floating-point operations are two for each
multiplication and addition in a matrix product, no others: a matrix of n entries costs 2 n for each position that it
multiplies; attention 2 (K + V) for each pair of a query and a key, in each head. Masked pairs are computed too. A
backward pass takes twice the products of a forward pass.
"""

from dataclasses import dataclass
from typing import Any, Protocol, cast

from torch import nn

from etude.model.attention import LocalAttention, MultiHeadAttention
from etude.model.encoder_decoder import EncoderDecoder
from etude.model.position import Position
from etude.model.transformer import TransformerDecoder, TransformerEncoder
from etude.tasks import build
from etude.tasks.counted import CountedSize

Config = dict[str, Any]

_BY_FORMULA = (EncoderDecoder, TransformerEncoder, TransformerDecoder, MultiHeadAttention, LocalAttention)
NUMBER = 4  # bytes of a number in float32
HALF = 2  # of one in half precision


class Size(Protocol):
    """A model in numbers; of one sentence of S source and T target tokens."""

    @property
    def parameters(self) -> int:
        """Weights, shared ones counted once."""

    def training_flops(self, source: int, target: int) -> int:
        """Of one optimizer step."""

    def decoding_flops(self, source: int, target: int, beam: int) -> int:
        """Of translating it with caches: the first step has one hypothesis, each later one `beam` of them."""

    def saved_bytes(self, source: int, target: int, *, half: bool = False) -> float:
        """What is kept for the backward pass, without the logits: in float32, or the factors of products in half."""

    @property
    def takes_cost(self) -> bool:
        """Whether its logits need not be in memory all at once; see `etude.model.chunks`."""


@dataclass(frozen=True)
class TransformerSize:
    """Those of a Transformer, by formula."""

    parameters: int
    source_weights: int  # matrix entries that multiply each source position: the encoder's, and W_K and W_V across
    target_weights: int  # those that multiply each target position, the V x D of the output among them
    inner: int  # numbers between the matrices of one feed-forward network, for each position
    encoder_layers: int
    decoder_layers: int
    d_model: int
    heads: int
    d_k: int
    d_v: int
    dropout: bool
    attention_dropout: bool
    source_position: Position  # asked for what its scores cost
    target_position: Position
    takes_cost: bool = True

    def training_flops(self, source: int, target: int) -> int:
        """See `Size`."""
        once = self._encoding(source) + 2 * target * self.target_weights
        pairs = self._pairs(target, target) + self._pairs(target, source)
        scores = self._scores(self.target_position, target, target)
        return 3 * (once + self.decoder_layers * (pairs + scores))

    def decoding_flops(self, source: int, target: int, beam: int) -> int:
        """See `Size`."""
        total = self._encoding(source)
        for step in range(1, target + 1):
            pairs = self._pairs(1, step) + self._scores(self.target_position, 1, step) + self._pairs(1, source)
            one = 2 * self.target_weights + self.decoder_layers * pairs
            total += one if step == 1 else beam * one
        return total

    def saved_bytes(self, source: int, target: int, *, half: bool = False) -> float:
        """Each product keeps its two factors, each norm its input, each softmax its output, each dropout a mask."""
        factor = HALF if half else NUMBER
        around = (NUMBER + self.dropout) * self.d_model  # a norm's input and a mask of bytes, for each sub-layer
        reading = factor * (self.d_model + self.heads * (self.d_k + self.d_v))  # its input, queries, what was read
        read = factor * self.heads * (self.d_k + self.d_v)  # keys and values
        weights = self.heads * (NUMBER + (NUMBER + 1) * self.attention_dropout)  # of a query for a key
        feedforward = factor * (self.d_model + self.inner) + around
        encoder = source * (around + reading + read + feedforward) + weights * source**2
        own = target * (around + reading + read) + weights * target**2
        cross = target * (around + reading) + source * read + weights * target * source
        return self.encoder_layers * encoder + self.decoder_layers * (own + cross + target * feedforward)

    def _encoding(self, source: int) -> int:
        """The encoder, and the keys and values that the decoder reads from its output."""
        pairs = self._pairs(source, source) + self._scores(self.source_position, source, source)
        return 2 * source * self.source_weights + self.encoder_layers * pairs

    def _pairs(self, queries: int, keys: int) -> int:
        """The products of one layer's attention."""
        return 2 * self.heads * (self.d_k + self.d_v) * queries * keys

    def _scores(self, position: Position, queries: int, keys: int) -> int:
        return self.heads * position.score_flops(queries, keys, self.d_k)


def measure_size(config: Config) -> Size:
    """The size of the model of a resolved config.

    Raises:
        UserError: a part refuses its sizes.
    """
    if not is_ours(config):
        return CountedSize(build.shapes(config), lambda: build.model(config, config["tokenizer"]["vocab_size"]))
    node, model = config["model"], build_shallow(config)
    stacks = cast(TransformerEncoder, model.encoder), cast(TransformerDecoder, model.decoder)
    encoder, decoder = (stack.layers[0] for stack in stacks)
    n_encoder, n_decoder = (node[side]["n_layers"] for side in ("encoder", "decoder"))
    memory = sum(_entries(decoder.get_submodule(f"cross_attention.{part}")) for part in ("k_proj", "v_proj"))
    attention = node["attention"]
    return TransformerSize(
        _weights(model) + sum((n - 1) * _of_layer(one) for n, one in ((n_encoder, stacks[0]), (n_decoder, stacks[1]))),
        n_encoder * _entries(encoder) + n_decoder * memory,
        n_decoder * (_entries(decoder) - memory) + model.embedding.output_table.weight.numel(),
        inner=_inner(encoder),
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
    """Whether the model is étude's Transformer, with its encoder, its decoder and a softmax, and no other class."""
    node = config["model"]
    made_of = {
        node["_target_"],
        *((node.get(part) or {}).get("_target_") for part in ("encoder", "decoder", "attention")),
    }
    return made_of <= {f"{kind.__module__}.{kind.__qualname__}" for kind in _BY_FORMULA}


def build_shallow(config: Config) -> EncoderDecoder:
    """The model with one layer in each stack and without memory: all layers are alike."""
    node = config["model"]
    return build.shapes(
        config | {"model": node | {side: node[side] | {"n_layers": 1} for side in ("encoder", "decoder")}}
    )


def _of_layer(stack: TransformerEncoder | TransformerDecoder) -> int:
    """Parameters of a layer, with what its positions have for it alone."""
    position = stack.position.at_layer(0)
    return _weights(stack.layers[0]) + (_weights(position) if position is not stack.position else 0)


def _weights(module: nn.Module) -> int:
    return sum(weight.numel() for weight in module.parameters())


def _inner(layer: nn.Module) -> int:
    """Of its feed-forward network: what all matrices but the last put out; a gate and what it lets pass besides."""
    matrices = [part for part in layer.get_submodule("feedforward").modules() if isinstance(part, nn.Linear)]
    meeting = 2 * matrices[-1].in_features if len(matrices) > 2 else 0
    return sum(matrix.out_features for matrix in matrices[:-1]) + meeting


def _entries(module: nn.Module) -> int:
    return sum(part.weight.numel() for part in module.modules() if isinstance(part, nn.Linear))
