"""Gated convolutions against sums written out, and how far they see."""

import math

import pytest
import torch
from torch.testing import assert_close

from etude.model.convolution import GatedConvolution

from .conftest import drawn

CONVOLUTION = ("model/encoder=convolution", "model/decoder=convolution")


@pytest.mark.parametrize("separable", [False, True])
@pytest.mark.parametrize("kernel", [1, 2, 5])
def test_a_gated_convolution_is_the_sum_over_its_neighbourhood(kernel, separable):
    layer = GatedConvolution(d_model=4, kernel=kernel, separable=separable).double()
    x = drawn(2, 6 + kernel - 1, 4)
    for at in range(6):
        seen = x[:, at : at + kernel]  # (B, k, D)
        if separable:
            each = torch.einsum("bkd,dk->bd", seen, layer.each.weight[:, 0]) + layer.each.bias
            both = each @ layer.mix.weight[:, :, 0].T + layer.mix.bias
        else:
            both = torch.einsum("bkd,edk->be", seen, layer.mix.weight) + layer.mix.bias
        assert_close(layer(x)[:, at], both[:, :4] * torch.sigmoid(both[:, 4:]))


def test_a_separable_convolution_has_k_d_and_2_d_d_weights():
    whole, separable = (GatedConvolution(d_model=8, kernel=5, separable=way) for way in (False, True))
    assert sum(weight.numel() for weight in whole.parameters()) == 5 * 8 * 16 + 16
    assert sum(weight.numel() for weight in separable.parameters()) == (5 * 8 + 8) + (8 * 16 + 16)


def reach(model, length: int) -> torch.Tensor:
    """(S, S): whether the encoder's output at i depends on the embedding at j."""
    x = drawn(1, length, 16).requires_grad_()
    out = model.encoder(x, torch.ones(1, length, dtype=torch.bool))
    rows = [torch.autograd.grad(out[0, i].sum(), x, retain_graph=True)[0][0].abs().sum(-1) for i in range(length)]
    return torch.stack(rows) > 0


@pytest.mark.parametrize(("kernel", "layers"), [(3, 1), (3, 2), (5, 2), (1, 2)])
def test_a_stack_sees_k_half_further_with_every_layer(jittered, kernel, layers):
    sizes = (f"model.encoder.kernel={kernel}", f"model.encoder.n_layers={layers}")
    model, at = jittered(*CONVOLUTION, *sizes).double(), torch.arange(12)
    assert torch.equal(reach(model, 12), (at[:, None] - at).abs() <= layers * (kernel // 2))


@pytest.mark.parametrize("separable", ["true", "false"])
@pytest.mark.parametrize("kernel", [1, 2, 3, 5])
def test_the_decoder_decodes_step_by_step_with_any_kernel(jittered, sentences, kernel, separable):
    options = (f"model.decoder.kernel={kernel}", f"model.decoder.separable={separable}")
    model, (source, mask, target) = jittered(*CONVOLUTION, *options).double(), sentences
    whole, state = model(source, mask, target), model.start(source, mask)
    for step in range(target.size(1)):
        assert_close(model.step(target[:, step], state), whole[:, step])


def test_parts_are_told_in_which_layer_of_convolutions_they_are(tiny):
    made = tiny(*CONVOLUTION, "model/residual=hyper", "model/attention=differential", "model.n_layers=3")
    assert [layer.convolution_residual.first for layer in made.encoder.layers] == [0, 1, 2]
    starts = [0.8 - 0.6 * math.exp(-0.3 * layer) for layer in range(3)]
    assert [layer.cross.attention.initial for layer in made.decoder.layers] == pytest.approx(starts)
