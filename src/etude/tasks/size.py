"""What there is in a model, from its shapes alone: it is built on the meta device, where tensors have no memory.

Of étude's Transformer formulas say what it costs, any other is counted. Floating-point operations are two for each
multiplication and addition in a matrix product, no others: a matrix of n entries costs 2 n for each position that it
multiplies; attention 2 (K + V) for each pair of a query and a key, in each head. Masked pairs are computed too. A
backward pass takes twice the products of a forward pass.
"""

from dataclasses import dataclass
from typing import Any, Protocol

from torch import nn

from etude.model.attention import MultiHeadAttention
from etude.model.position import Position
from etude.model.transformer import Transformer
from etude.tasks import build
from etude.tasks.counted import CountedSize

Config = dict[str, Any]

NUMBER = 4  # bytes of a number in float32


class Size(Protocol):
    """A model in numbers; of one sentence of S source and T target pieces."""

    @property
    def parameters(self) -> int:
        """Weights, shared ones counted once."""

    def training_flops(self, source: int, target: int) -> int:
        """Of one optimizer step."""

    def decoding_flops(self, source: int, target: int, beam: int) -> int:
        """Of translating it with caches: the first step has one hypothesis, each later one `beam` of them."""

    def saved_bytes(self, source: int, target: int) -> float:
        """What is kept for the backward pass in float32, without the logits."""


@dataclass(frozen=True)
class TransformerSize:
    """Those of étude's Transformer, by formula."""

    parameters: int
    source_weights: int  # matrix entries that multiply each source position: the encoder's, and W_K and W_V across
    target_weights: int  # those that multiply each target position, the V x D of the output among them
    inner: int  # numbers between the matrices of one feed-forward network, for each position
    layers: int
    d_model: int
    heads: int
    d_k: int
    d_v: int
    dropout: bool
    attention_dropout: bool
    source_position: Position  # asked for what its scores cost
    target_position: Position

    def training_flops(self, source: int, target: int) -> int:
        """See `Size`."""
        once = self._encoding(source) + 2 * target * self.target_weights
        pairs = self._pairs(target, target) + self._pairs(target, source)
        return 3 * (once + pairs + self._scores(self.target_position, target, target))

    def decoding_flops(self, source: int, target: int, beam: int) -> int:
        """See `Size`."""
        total = self._encoding(source)
        for step in range(1, target + 1):
            own = self._pairs(1, step) + self._scores(self.target_position, 1, step)
            one = 2 * self.target_weights + own + self._pairs(1, source)
            total += one if step == 1 else beam * one
        return total

    def saved_bytes(self, source: int, target: int) -> float:
        """Each product keeps its two factors, each norm its input, each softmax its output, each dropout a mask."""
        around = (NUMBER + self.dropout) * self.d_model  # a norm's input and a mask of bytes, for each sub-layer
        reading = NUMBER * (self.d_model + self.heads * (self.d_k + self.d_v))  # its input, queries, what was read
        read = NUMBER * self.heads * (self.d_k + self.d_v)  # keys and values
        weights = self.heads * (NUMBER + (NUMBER + 1) * self.attention_dropout)  # of a query for a key
        feedforward = NUMBER * (self.d_model + self.inner) + around
        encoder = source * (around + reading + read + feedforward) + weights * source**2
        own = target * (around + reading + read) + weights * target**2
        cross = target * (around + reading) + source * read + weights * target * source
        return self.layers * (encoder + own + cross + target * feedforward)

    def _encoding(self, source: int) -> int:
        """The encoder, and the keys and values that the decoder reads from its output."""
        matrices = 2 * source * self.source_weights
        return matrices + self._pairs(source, source) + self._scores(self.source_position, source, source)

    def _pairs(self, queries: int, keys: int) -> int:
        return 2 * self.layers * self.heads * (self.d_k + self.d_v) * queries * keys

    def _scores(self, position: Position, queries: int, keys: int) -> int:
        return self.layers * self.heads * position.score_flops(queries, keys, self.d_k)


def measure_size(config: Config) -> Size:
    """The size of the model of a resolved config.

    Raises:
        UserError: a part refuses its sizes.
    """
    node = config["model"]
    if not is_ours(config):
        return CountedSize(build.shapes(config), lambda: build.model(config, config["tokenizer"]["vocab_size"]))
    model = build_shallow(config)
    layers, attention = node["n_layers"], node["attention"]
    shallow_counts, of_layer = _counts(model), _counts_of_layer(model)
    parameters, source, target = (a + (layers - 1) * b for a, b in zip(shallow_counts, of_layer, strict=True))
    return TransformerSize(
        parameters,
        source,
        target,
        inner=_inner(model.encoder[0]),
        layers=layers,
        d_model=node["d_model"],
        heads=attention["heads"],
        d_k=attention["d_k"],
        d_v=attention["d_v"],
        dropout=bool(node["dropout"]),
        attention_dropout=bool(node["attention_dropout"]),
        source_position=model.source_position,
        target_position=model.target_position,
    )


def is_ours(config: Config) -> bool:
    """Whether the model is étude's Transformer, and no child of it."""
    return bool(config["model"]["_target_"] == f"{Transformer.__module__}.{Transformer.__qualname__}")


def build_shallow(config: Config) -> Transformer:
    """The model with one layer in each stack and without memory: all layers are alike."""
    return build.shapes(config | {"model": config["model"] | {"n_layers": 1}})


def _counts(model: Transformer) -> tuple[int, int, int]:
    """Parameters, and the matrix entries that multiply each source and each target position."""
    parameters, source, target = _counts_of_layer(model)
    others = sum(weight.numel() for weight in model.parameters()) - parameters
    return parameters + others, source, target + model.embedding.output_table.weight.numel()


def _counts_of_layer(model: Transformer) -> tuple[int, int, int]:
    """The same for one layer of the encoder and one of the decoder."""
    encoder, decoder = model.encoder[0], model.decoder[0]
    crossing = [part for part in decoder.modules() if isinstance(part, MultiHeadAttention) and part.is_cross]
    memory = sum(_entries(attention.k_proj) + _entries(attention.v_proj) for attention in crossing)
    parameters = sum(weight.numel() for layer in (encoder, decoder) for weight in layer.parameters())
    return parameters, _entries(encoder) + memory, _entries(decoder) - memory


def _inner(layer: nn.Module) -> int:
    """Of its feed-forward network: what all matrices but the last put out; a gate and what it lets pass besides."""
    matrices = [part for part in layer.get_submodule("feedforward").modules() if isinstance(part, nn.Linear)]
    meeting = 2 * matrices[-1].in_features if len(matrices) > 2 else 0
    return sum(matrix.out_features for matrix in matrices[:-1]) + meeting


def _entries(module: nn.Module) -> int:
    return sum(part.weight.numel() for part in module.modules() if isinstance(part, nn.Linear))
