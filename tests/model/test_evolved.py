"""The Evolved Transformer against its figure, sub-layer by sub-layer, with PyTorch's convolutions and layers."""

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch.testing import assert_close

EVOLVED = ("model/encoder=evolved", "model/decoder=evolved", "model/feedforward=evolved")


def convolve(part, x: Tensor, before: int, after: int) -> Tensor:
    """PyTorch's convolution with the weights of one of ours: of all channels at once, or of each by itself first."""
    channels, mixing = F.pad(x.mT, (before, after)), part.mix.weight
    if hasattr(part, "each"):
        channels = F.conv1d(channels, part.each.weight, groups=channels.size(1))
    return F.conv1d(channels, mixing.view(len(mixing), channels.size(1), -1), part.mix.bias).mT


def add(x: Tensor, y: Tensor) -> Tensor:
    """The sum over the channels that both have; further ones are those of `x`."""
    return torch.cat([x[..., : y.size(-1)] + y, x[..., y.size(-1) :]], dim=-1)


def attend(modules, x: Tensor, memory: Tensor, mask: Tensor) -> Tensor:
    """Section 3.2 of the Transformer's paper, with the heads of all modules side by side and one W_O."""
    found = []
    for module in modules:
        queries, keys, values = (
            project(read).chunk(module.heads, dim=-1)
            for project, read in ((module.q_proj, x), (module.k_proj, memory), (module.v_proj, memory))
        )
        for q, k, v in zip(queries, keys, values, strict=True):
            found.append((q @ k.mT / q.size(-1) ** 0.5 + mask).softmax(dim=-1) @ v)
    out = torch.cat([module.out_proj.weight for module in modules], dim=1)
    return torch.cat(found, dim=-1) @ out.T + sum(module.out_proj.bias for module in modules)


def rest(layer):
    """The layer of the Transformer at its end, with the network that stands in it."""
    layer.rest.feedforward = layer.rest.feedforward.network
    return layer.rest


def pre(wrapping, x: Tensor, sublayer) -> Tensor:
    return x + sublayer(wrapping.norm(x))


def post(wrapping, x: Tensor, sublayer) -> Tensor:
    return wrapping.norm(x + sublayer(x))


def encode(layer, around, x: Tensor) -> Tensor:
    """What stands before the Transformer's layer in the encoder's half of the figure."""

    def gate(h: Tensor) -> Tensor:
        value, gate = layer.gate(h).chunk(2, dim=-1)
        return value * gate.sigmoid()

    def branches(h: Tensor) -> Tensor:
        parts = layer.convolution
        hidden = add(convolve(parts.wide, h, 0, 0).relu(), convolve(parts.narrow, h, 1, 1).relu())
        return add(torch.zeros_like(h), convolve(parts.last, parts.norm(hidden), 4, 4))

    return around(layer.convolution_residual, around(layer.gate_residual, x, gate), branches)


def decode(layer, around, y: Tensor, memory: Tensor, causal: Tensor) -> Tensor:
    """What stands before the Transformer's layer in the decoder's half of the figure."""

    def look(h: Tensor) -> Tensor:
        own, cross = layer.attention.attention, layer.attention.cross_attention
        return attend([own.first, own.second], h, h, causal) + attend([cross], h, memory, torch.zeros(()))

    def branches(h: Tensor) -> Tensor:
        parts = layer.convolution
        hidden = add(convolve(parts.wide, h, 10, 0).relu(), convolve(parts.narrow, h, 6, 0))
        return convolve(parts.last, parts.norm(hidden), 6, 0)

    return around(layer.convolution_residual, around(layer.attention.residual, y, look), branches)


@pytest.mark.parametrize("around", [post, pre])
def test_the_model_is_that_of_the_figure(jittered, pytorchs, longer_sentences, around):
    """Sentence by sentence, so that there is no padding."""
    model = jittered(*EVOLVED, f"model/residual={around.__name__}", "model.attention.bias=true").double()
    source, mask, target = longer_sentences
    found, encoder, decoder = model(source, mask, target), model.encoder, model.decoder
    encoders, decoders = (
        [(layer, pytorchs(rest(layer), pre=around is pre, activation=activation)) for layer in stack.layers]
        for stack, activation in ((encoder, F.relu), (decoder, F.silu))
    )
    causal = nn.Transformer.generate_square_subsequent_mask(target.size(1), dtype=torch.float64)
    for row, length in enumerate(mask.sum(dim=1).tolist()):
        x = encoder.position.add_to_embedding(model.embedding.source(source[row : row + 1, :length]), 0)
        for layer, theirs in encoders:
            x = theirs(encode(layer, around, x))
        memory = encoder.final_norm(x)
        y = decoder.position.add_to_embedding(model.embedding.target(target[row : row + 1]), 0)
        for layer, theirs in decoders:
            y = theirs(decode(layer, around, y, memory, causal), memory, tgt_mask=causal)
        assert_close(found[row : row + 1], model.embedding.logits(decoder.final_norm(y)))
