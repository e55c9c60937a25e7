"""What there is in a model, from its shapes alone: it is built on the meta device, where tensors have no memory."""

from dataclasses import dataclass
from typing import Any

from torch import nn

from etude.model.attention import MultiHeadAttention
from etude.model.position import Position
from etude.model.transformer import Transformer
from etude.tasks import build

Config = dict[str, Any]


@dataclass(frozen=True)
class Size:
    """A model in numbers.

    Attributes:
        parameters: weights, shared ones counted once.
        source_weights: matrix entries that multiply each source position: the encoder's, and W_K and W_V of the
            attention to its output.
        target_weights: matrix entries that multiply each target position, the V x D of the output among them.
        inner: numbers between the matrices of one feed-forward network, for each position.
        layers: N.
        heads: H.
        d_k: K, of a query and a key.
        d_v: V, of a value.
        source_position: the encoder's scheme, asked for what its scores cost.
        target_position: the decoder's.
    """

    parameters: int
    source_weights: int
    target_weights: int
    inner: int
    layers: int
    heads: int
    d_k: int
    d_v: int
    source_position: Position
    target_position: Position


def measure_size(config: Config) -> Size:
    """The size of the model of a resolved config.

    Raises:
        UserError: a part refuses its sizes.
    """
    layers, attention = config["model"]["n_layers"], config["model"]["attention"]
    model = build_shallow(config)
    shallow_counts, of_layer = _counts(model), _counts_of_layer(model)
    parameters, source, target = (a + (layers - 1) * b for a, b in zip(shallow_counts, of_layer, strict=True))
    return Size(
        parameters,
        source,
        target,
        _inner(model.encoder[0]),
        layers,
        attention["heads"],
        attention["d_k"],
        attention["d_v"],
        model.source_position,
        model.target_position,
    )


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
