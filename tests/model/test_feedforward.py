"""The feed-forward networks against their formulas in numpy."""

import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose

from etude.model.feedforward import (
    ACTIVATIONS as NAMED,
)
from etude.model.feedforward import (
    GatedFeedForward,
    GegluFeedForward,
    GeluFeedForward,
    InSomeLayers,
    NoFeedForward,
    NormFormerFeedForward,
    PlainFeedForward,
    ReluFeedForward,
    SquaredReluFeedForward,
    SwigluFeedForward,
)
from etude.model.numbered import number_layers

BY_NAME = {
    "relu": lambda z: max(0.0, z),
    "squared_relu": lambda z: max(0.0, z) ** 2,
    "gelu": lambda z: z * (1 + math.erf(z / math.sqrt(2))) / 2,
    "swish": lambda z: z / (1 + math.exp(-z)),
    "sigmoid": lambda z: 1 / (1 + math.exp(-z)),
    "tanh": math.tanh,
    "elu": lambda z: z if z > 0 else math.expm1(z),
    "selu": lambda z: 1.0507009873554805 * (z if z > 0 else 1.6732632423543772 * math.expm1(z)),
    "softplus": lambda z: math.log1p(math.exp(z)),
    "identity": lambda z: z,
}
ACTIVATIONS = {
    SquaredReluFeedForward: BY_NAME["squared_relu"],
    ReluFeedForward: lambda z: max(0.0, z),
    GeluFeedForward: lambda z: z * (1 + math.erf(z / math.sqrt(2))) / 2,
    SwigluFeedForward: lambda z: z / (1 + math.exp(-z)),
    GegluFeedForward: lambda z: z * (1 + math.erf(z / math.sqrt(2))) / 2,
}
PLAIN = (ReluFeedForward, GeluFeedForward, SquaredReluFeedForward)
GATED = (SwigluFeedForward, GegluFeedForward)


def network(kind, d_model=5, d_ff=9, **given):
    torch.manual_seed(2)
    return kind(d_model=d_model, d_ff=d_ff, **given).double()


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


@pytest.mark.parametrize("name", BY_NAME)
def test_every_activation_is_its_formula_with_and_without_a_gate(name):
    assert set(NAMED) == set(BY_NAME)
    x, activation = inputs(), np.vectorize(BY_NAME[name])
    plain = network(PlainFeedForward, activation=name)
    inner = activation(x.numpy() @ weight(plain.inner) + plain.inner.bias.detach().numpy())
    assert_allclose(plain(x).detach(), inner @ weight(plain.outer) + plain.outer.bias.detach().numpy(), atol=1e-12)
    gated = network(GatedFeedForward, activation=name, match_parameters=False)
    assert gated.inner.out_features == 9
    inner = activation(x.numpy() @ weight(gated.gate)) * (x.numpy() @ weight(gated.inner))
    assert_allclose(gated(x).detach(), inner @ weight(gated.outer), atol=1e-12)


def test_biases_are_those_of_every_matrix_or_of_none():
    x = inputs()
    bare = network(PlainFeedForward, activation="swish", bias=False)
    assert {name for name, _ in bare.named_parameters()} == {"inner.weight", "outer.weight"}
    gated = network(GatedFeedForward, activation="identity", match_parameters=True, bias=True)
    one, other = (x.numpy() @ weight(part) + part.bias.detach().numpy() for part in (gated.gate, gated.inner))
    expected = (one * other) @ weight(gated.outer) + gated.outer.bias.detach().numpy()
    assert_allclose(gated(x).detach(), expected, atol=1e-12)


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


def test_a_normformer_network_normalises_between_its_matrices():
    module, x = network(NormFormerFeedForward, eps=1e-6), inputs()
    for parameter in module.norm.parameters():
        parameter.data.normal_(generator=torch.Generator().manual_seed(3))
    inner = module.inner(x).clamp(min=0)
    normed = (inner - inner.mean(-1, keepdim=True)) / (inner.var(-1, keepdim=True, unbiased=False) + 1e-6).sqrt()
    torch.testing.assert_close(module(x), module.outer(module.norm.weight * normed + module.norm.bias))


def chosen(n_layers: int, stack: str, *, behind: int, every: int | None) -> list[int]:
    """The layers with the network that stands in some, of a stack of these alone."""
    place = {"inside": torch.nn.Identity, "outside": NoFeedForward, "stacks": ["decoder"]}
    layers = torch.nn.ModuleList(InSomeLayers(**place, behind=behind, every=every) for _ in range(n_layers))
    number_layers(layers, stack)
    x = torch.ones(1, 1, 2)
    return [n for n, layer in enumerate(layers) if layer(x).any()]


@pytest.mark.parametrize(
    ("behind", "every", "layers"), [(0, 4, [3, 7, 11]), (1, 5, [0, 5, 10]), (1, None, [10]), (0, 1, [*range(12)])]
)
def test_a_network_in_some_layers_is_in_those_counted_back_from_the_last_and_in_its_stack_alone(behind, every, layers):
    assert chosen(12, "decoder", behind=behind, every=every) == layers
    assert chosen(12, "encoder", behind=behind, every=every) == []


def test_a_stack_with_no_layer_so_far_from_its_end_is_refused():
    with pytest.raises(ValueError, match=r"of 2 layers, none has 2 behind it: say model\.feedforward\.behind=1"):
        chosen(2, "decoder", behind=2, every=None)
