"""The feed-forward networks against their formulas in numpy."""

import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose

from etude.model.feedforward import GegluFeedForward, GeluFeedForward, NoFeedForward, ReluFeedForward, SwigluFeedForward

ACTIVATIONS = {
    ReluFeedForward: lambda z: max(0.0, z),
    GeluFeedForward: lambda z: z * (1 + math.erf(z / math.sqrt(2))) / 2,
    SwigluFeedForward: lambda z: z / (1 + math.exp(-z)),
    GegluFeedForward: lambda z: z * (1 + math.erf(z / math.sqrt(2))) / 2,
}
PLAIN, GATED = (ReluFeedForward, GeluFeedForward), (SwigluFeedForward, GegluFeedForward)


def network(kind, d_model=5, d_ff=9):
    torch.manual_seed(2)
    return kind(d_model=d_model, d_ff=d_ff).double()


def inputs():
    return torch.randn(2, 3, 5, dtype=torch.float64, generator=torch.Generator().manual_seed(4))


def weight(linear):
    return linear.weight.detach().numpy().T


@pytest.mark.parametrize("kind", PLAIN)
def test_two_matrices_with_the_activation_between_them(kind):
    module, x = network(kind), inputs()
    inner = np.vectorize(ACTIVATIONS[kind])(x.numpy() @ weight(module.inner) + module.inner.bias.detach().numpy())
    assert_allclose(module(x).detach(), inner @ weight(module.outer) + module.outer.bias.detach().numpy(), atol=1e-12)


@pytest.mark.parametrize("kind", GATED)
def test_three_matrices_one_of_which_is_a_gate(kind):
    module, x = network(kind), inputs()
    gate = np.vectorize(ACTIVATIONS[kind])(x.numpy() @ weight(module.gate))
    expected = (gate * (x.numpy() @ weight(module.inner))) @ weight(module.outer)
    assert_allclose(module(x).detach(), expected, atol=1e-12)
    assert not any(name.endswith("bias") for name, _ in module.named_parameters())


@settings(max_examples=40, deadline=None)
@given(d_model=st.integers(1, 64), d_ff=st.integers(1, 512))
def test_two_thirds_of_the_units_make_a_gated_network_as_large_as_a_plain_one(d_model, d_ff):
    plain, gated = 2 * d_model * d_ff, sum(p.numel() for p in network(SwigluFeedForward, d_model, d_ff).parameters())
    assert abs(gated - plain) <= d_model  # by the rounding to whole units, each of which has three weights a dimension
    assert gated % (3 * d_model) == 0


def test_no_network_adds_zeros_and_has_no_parameters():
    module = NoFeedForward()
    assert torch.equal(module(inputs()), torch.zeros(2, 3, 5, dtype=torch.float64))
    assert not list(module.parameters())
