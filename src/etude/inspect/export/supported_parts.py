"""The parts that CTranslate2 supports: for each class its options there, and a function that writes its weights.

A class that is not in its table is refused by name. Positions that are added to embeddings become a table; the scale
of the scores is a number, or one per head.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
import torch
from ctranslate2.specs.common_spec import Activation, LayerNormSpec, LinearSpec
from ctranslate2.specs.model_spec import OPTIONAL
from torch import Tensor, nn
from torch.nn import functional as F

from etude.errors import UserError
from etude.model import feedforward, position, scale
from etude.model.embedding import Embedding, TiedAll, TiedAllT2T, TiedDecoder, Untied
from etude.model.norm import LayerNorm, RmsNorm
from etude.model.residual import PostNorm, PreNorm, Sandwich

LONGEST = 2048  # positions in the table of a scheme without a maximum, unless a run may need more

Answer = TypeVar("Answer")
Options = dict[str, Any]


def look_up(axis: str, part: Any, table: Mapping[type, Answer]) -> Answer:
    """Look up the class of a part in a table.

    Raises:
        UserError: the table does not have it.
    """
    if type(part) not in table:
        raise UserError(
            f"{axis}: {type(part).__name__} is not among what CTranslate2 can hold, "
            f"which is {', '.join(sorted(kind.__name__ for kind in table))}; `etude translate run=...` takes any"
        )
    return table[type(part)]


def write_linear(spec: LinearSpec, linear: nn.Linear) -> None:
    """Write the weights, and the bias if there is one."""
    spec.weight = linear.weight.detach()
    if linear.bias is not None:
        spec.bias = linear.bias.detach()


def _write_norm(spec: LayerNormSpec, norm: Any) -> None:
    spec.gamma = norm.weight.detach()
    if isinstance(norm, LayerNorm):
        spec.beta = norm.bias.detach()


# Residual connections and norms.

_NORMS: dict[type, Options] = {LayerNorm: {}, RmsNorm: {"rms_norm": True}}

_SUBLAYERS = {  # our residual connection; their sub-layer; their norms before and after it, where both have one
    "attention_residual": ("self_attention", "input_layer_norm", "post_attention_layer_norm"),
    "cross_attention_residual": (
        "attention",
        "external_pre_encoder_attention_layer_norm",
        "external_post_encoder_attention_layer_norm",
    ),
    "feedforward_residual": ("ffn", "pre_feedforward_layer_norm", "post_feedforward_layer_norm"),
}


@dataclass(frozen=True)
class Residual:
    """How to convert a residual connection.

    Attributes:
        options: maps the connection and "encoder" or "decoder" to the options of a stack.
        write: writes the norms of a layer.
        write_last: writes the norm after a stack.
    """

    options: Callable[[Any, str], Options]
    write: Callable[[Any, Any], None]
    write_last: Callable[[Any, Any], None]


def _write_inner_norms(spec: Any, layer: Any) -> None:
    for name, (sublayer, _, _) in _SUBLAYERS.items():
        if hasattr(layer, name):
            _write_norm(getattr(spec, sublayer).layer_norm, getattr(layer, name).norm)


def _write_outer_norms(spec: Any, layer: Any) -> None:
    for name, (_, before, after) in _SUBLAYERS.items():
        if hasattr(layer, name):
            _write_norm(getattr(spec, before), getattr(layer, name).before)
            _write_norm(getattr(spec, after), getattr(layer, name).after)


def _norm_options(norm: nn.Module) -> Options:
    return look_up("model/norm", norm, _NORMS)


def _sandwich_options(residual: Sandwich, side: str) -> Options:
    of_the_decoder = {"external_pre_post_encoder_layers": True} if side == "decoder" else {}
    return {"pre_norm": True, "pre_post_layer_norm": True} | of_the_decoder | _norm_options(residual.before)


def _write_final(spec: Any, norm: nn.Module) -> None:
    _write_norm(spec.layer_norm, norm)


RESIDUALS: dict[type, Residual] = {
    PostNorm: Residual(
        lambda part, side: {"pre_norm": False} | _norm_options(part.norm), _write_inner_norms, lambda spec, norm: None
    ),
    PreNorm: Residual(
        lambda part, side: {"pre_norm": True} | _norm_options(part.norm), _write_inner_norms, _write_final
    ),
    Sandwich: Residual(_sandwich_options, _write_outer_norms, _write_final),
}


# The feed-forward network.


@dataclass(frozen=True)
class FeedForward:
    """How to convert a feed-forward network: the options of a stack, and a function that writes a layer's network."""

    options: Options
    write: Callable[[Any, Any], None]


def _write_two(spec: Any, network: feedforward.FeedForward) -> None:
    write_linear(spec.linear_0, network.inner)
    write_linear(spec.linear_1, network.outer)


def _write_gated(spec: Any, network: feedforward.GatedFeedForward) -> None:
    write_linear(spec.linear_0, network.gate)
    write_linear(spec.linear_0_noact, network.inner)
    write_linear(spec.linear_1, network.outer)


FEEDFORWARDS: dict[type, FeedForward] = {
    feedforward.ReluFeedForward: FeedForward({"activation": Activation.RELU}, _write_two),
    feedforward.GeluFeedForward: FeedForward({"activation": Activation.GELU}, _write_two),
    feedforward.SwigluFeedForward: FeedForward({"activation": Activation.SWISH, "ffn_glu": True}, _write_gated),
    feedforward.GegluFeedForward: FeedForward({"activation": Activation.GELU, "ffn_glu": True}, _write_gated),
}


# Positions.


@dataclass(frozen=True)
class Position:
    """How to convert a position scheme: the options of a stack, and a function that writes it.

    The function is called with the specification of a stack, the scheme, d_model and the number of positions.
    """

    options: Callable[[Any], Options]
    write: Callable[[Any, Any, int, int], None]


def _write_table(spec: Any, scheme: Any, d_model: int, positions: int) -> None:
    """Write what the scheme adds to the embeddings of the first positions."""
    rows = scheme.table.num_embeddings if isinstance(scheme, position.Learned) else max(LONGEST, positions)
    spec.position_encodings.encodings = scheme.add_to_embedding(torch.zeros(1, rows, d_model), 0)[0].detach()


def _write_t5(spec: Any, scheme: Any, d_model: int, positions: int) -> None:
    for layer in spec.layer:
        layer.self_attention.relative_attention_bias = scheme.table.detach().T.contiguous()
        layer.self_attention.relative_attention_max_distance = np.int32(scheme.max_distance)


def _write_shaw(spec: Any, scheme: Any, d_model: int, positions: int) -> None:
    for layer, own in zip(spec.layer, scheme.layers, strict=True):
        size = int(layer.self_attention.head_dim)
        layer.self_attention.relative_position_keys = F.pad(own.table.detach(), (0, size - own.table.size(1)))
        layer.self_attention.relative_position_values = OPTIONAL  # none, as section 3.2 of Shaw et al. allows


_TABLE = Position(lambda scheme: {}, _write_table)

POSITIONS: dict[type, Position] = {
    position.NoPosition: _TABLE,
    position.Sinusoidal: _TABLE,
    position.SinusoidalT2T: _TABLE,
    position.Learned: _TABLE,
    position.Rotary: Position(lambda scheme: {"rotary_dim": scheme.d_k, "rotary_base": scheme.base}, lambda *_: None),
    position.T5: Position(lambda scheme: {"relative_attention_bias": True}, _write_t5),
    position.Shaw: Position(lambda scheme: {"relative_position": True}, _write_shaw),
}


# The scale of attention scores: a number, or (H,).

FACTORS: dict[type, Callable[[Any], float | Tensor]] = {
    scale.SqrtDk: lambda part: part.factor,
    scale.Dk: lambda part: part.factor,
    scale.SqrtDmodel: lambda part: part.factor,
    scale.Unscaled: lambda part: 1.0,
    scale.LearnedPerHead: lambda part: part.log_factor.exp(),
}


# Embeddings: the tables of source and target (V, D), which CTranslate2 multiplies by sqrt(D).


def _tables(embedding: Embedding) -> tuple[Tensor, Tensor]:
    return embedding.source_table.weight.detach(), embedding.target_table.weight.detach()


def _tables_t2t(embedding: TiedAllT2T) -> tuple[Tensor, Tensor]:
    """Zero the rows of the silent tokens; add the vector of the target language to every source row."""
    table = embedding.source_table.weight.detach().clone()
    table[embedding.silent] = 0.0
    return table + embedding.target_space.weight[0].detach() / embedding.factor, table


TABLES: dict[type, Callable[[Any], tuple[Tensor, Tensor]]] = {
    TiedAll: _tables,
    TiedDecoder: _tables,
    Untied: _tables,
    TiedAllT2T: _tables_t2t,
}
