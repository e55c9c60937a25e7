"""Convert a trained Transformer to a CTranslate2 specification: its options and its weights.

`supported_parts` maps each part to its counterpart there. All heads have the size of the larger of d_k and d_v, the
smaller one padded with zeros; keys and values shared by several query heads are repeated for each of them.
"""

from typing import Any

import numpy as np
import torch
from ctranslate2.specs import TransformerDecoderSpec, TransformerEncoderSpec, TransformerSpec
from torch import Tensor, nn
from torch.nn import functional as F

from etude.inspect.export.supported_parts import (
    FACTORS,
    FEEDFORWARDS,
    POSITIONS,
    RESIDUALS,
    TABLES,
    look_up,
    write_linear,
)
from etude.model.attention import MultiHeadAttention
from etude.model.encoder_decoder import EncoderDecoder
from etude.model.norm import LayerNorm, RmsNorm
from etude.model.transformer import TransformerDecoder, TransformerEncoder


@torch.no_grad()
def specify(model: nn.Module, positions: int) -> TransformerSpec:
    """Make the specification of a trained model, with its weights; the caller registers the vocabularies.

    `positions` are the most that a source or a translation takes.

    Raises:
        UserError: CTranslate2 does not support a part.
    """
    look_up("model", model, {EncoderDecoder: None})
    assert isinstance(model, EncoderDecoder)
    look_up("model/encoder", model.encoder, {TransformerEncoder: None})
    look_up("model/decoder", model.decoder, {TransformerDecoder: None})
    source, target = look_up("model/tying", model.embedding, TABLES)(model.embedding)
    encoder = TransformerEncoderSpec(**_options(model.encoder, "encoder"))
    decoder = TransformerDecoderSpec(**_options(model.decoder, "decoder"))
    _write_stack(encoder, model.encoder, positions)
    _write_stack(decoder, model.decoder, positions)
    encoder.embeddings[0].weight, decoder.embeddings.weight = source, target
    decoder.projection.weight = model.embedding.output_table.weight.detach()
    specification = TransformerSpec(encoder, decoder)
    norms = (norm for norm in model.modules() if isinstance(norm, LayerNorm | RmsNorm))
    specification.config.layer_norm_epsilon = next(norms).eps  # one for all
    return specification


def _options(stack: Any, side: str) -> dict[str, Any]:
    """Return the constructor options of the specification of a stack; refuse unsupported parts."""
    layer = stack.layers[0]
    attention = layer.attention
    look_up("model/attention", attention, {MultiHeadAttention: None})
    look_up("model/scale", attention.scale, FACTORS)
    return {
        "num_layers": len(stack.layers),
        "num_heads": attention.heads,
        "head_dim": _head_size(attention),
        **look_up("model/residual", layer.attention_residual, RESIDUALS).options(layer.attention_residual, side),
        **look_up("model/feedforward", layer.feedforward, FEEDFORWARDS).options,
        **look_up("model/position", stack.position, POSITIONS).options(stack.position),
    }


def _write_stack(spec: Any, stack: Any, positions: int) -> None:
    """Write the weights of an encoder or a decoder."""
    first = stack.layers[0]
    residual = RESIDUALS[type(first.attention_residual)]
    for to, layer in zip(spec.layer, stack.layers, strict=True):
        _write_attention(to.self_attention, layer.attention)
        if hasattr(layer, "cross_attention"):
            _write_attention(to.attention, layer.cross_attention)
        FEEDFORWARDS[type(layer.feedforward)].write(to.ffn, layer.feedforward)
        residual.write(to, layer)
    residual.write_last(spec, stack.final_norm)
    POSITIONS[type(stack.position)].write(spec, stack.position, first.attention.out_proj.out_features, positions)


def _head_size(attention: MultiHeadAttention) -> int:
    """Return the common size of the heads of queries, keys and values."""
    d_k = attention.q_proj.out_features // attention.heads
    return max(d_k, attention.v_proj.out_features // attention.kv_heads)


def _write_attention(spec: Any, attention: MultiHeadAttention) -> None:
    """Write the projections; the scale of the scores is folded into that of the queries."""
    heads, groups, size = attention.heads, attention.kv_heads, _head_size(attention)
    factor = look_up("model/scale", attention.scale, FACTORS)(attention.scale)
    queries = _split_heads(attention.q_proj, heads, size) * torch.as_tensor(factor).reshape(-1, 1, 1)
    keys, values = (
        _split_heads(linear, groups, size).repeat_interleave(heads // groups, dim=0)
        for linear in (attention.k_proj, attention.v_proj)
    )
    joined = [[queries], [keys, values]] if attention.is_cross else [[queries, keys, values]]
    for to, several in zip(spec.linear, joined, strict=False):
        rows = torch.cat(several).flatten(0, 1)
        to.weight = rows[:, :-1].contiguous()
        if attention.q_proj.bias is not None:
            to.bias = rows[:, -1].contiguous()
    read = attention.out_proj.weight.unflatten(1, (heads, -1))
    output = nn.Linear(heads * size, len(read), bias=attention.out_proj.bias is not None)
    output.weight.copy_(F.pad(read, (0, size - read.size(2))).flatten(1))
    if attention.out_proj.bias is not None:
        output.bias.copy_(attention.out_proj.bias)
    write_linear(spec.linear[-1], output)
    spec.queries_scale = np.float32(1)


def _split_heads(linear: nn.Linear, heads: int, size: int) -> Tensor:
    """Split a projection by head: (heads, size, D + 1), each row followed by its bias, zero rows up to `size`."""
    bias = linear.weight.new_zeros(linear.out_features) if linear.bias is None else linear.bias
    rows = torch.cat([linear.weight, bias[:, None]], dim=1).unflatten(0, (heads, -1))
    return F.pad(rows, (0, 0, 0, size - rows.size(1)))
