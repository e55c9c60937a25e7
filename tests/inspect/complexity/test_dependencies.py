"""Paths and chains are what stacking layers and counting steps by hand give."""

import math

import numpy as np
import pytest
import torch
from torch import nn

from etude.inspect.complexity.dependencies import chain_length, dependent_outputs, longest_chain, max_path_length
from etude.inspect.complexity.layers import Layer, compose_layers
from etude.studies.measured import load_measured

WIDTH = 8
SIZES = {"d": WIDTH, "k": 3, "r": 9}


@pytest.fixture(scope="module")
def layers() -> dict[str, Layer]:
    torch.manual_seed(3)
    return composed()


def composed(*typed: str) -> dict[str, Layer]:
    return {layer.row.name: layer for layer in compose_layers(load_measured("table1", typed))}


class Stack(nn.Module):
    """Several layers on top of each other."""

    def __init__(self, layers: list[nn.Module]) -> None:
        super().__init__()
        self.layers = nn.ModuleList(layers)

    def forward(self, x: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        for layer in self.layers:
            x = layer(x, mask)
        return x


@pytest.mark.parametrize("name", ["self_attention", "convolutional", "separable", "restricted"])
@pytest.mark.parametrize("length", [6, 11])
def test_so_many_layers_and_not_one_less_join_all_positions(layers, name, length):
    path = max_path_length(layers[name].build(SIZES).double(), length, WIDTH)
    stack = [layers[name].build(SIZES).double() for _ in range(path)]
    assert dependent_outputs(Stack(stack), length, WIDTH).all()
    assert not dependent_outputs(Stack(stack[1:]), length, WIDTH).all()


@pytest.mark.parametrize(("length", "k", "r"), [(2, 3, 9), (9, 5, 3), (20, 3, 9), (20, 9, 17)])
def test_a_contiguous_window_reaches_so_far_in_every_layer(layers, length, k, r):
    sizes = {"d": WIDTH, "k": k, "r": r}
    paths = {name: max_path_length(layers[name].build(sizes).double(), length, WIDTH) for name in layers}
    assert paths == {
        "self_attention": 1,
        "convolutional": math.ceil((length - 1) / (k // 2)),  # so many neighbours on either side
        "separable": math.ceil((length - 1) / (k // 2)),
        "restricted": math.ceil((length - 1) / (r // 2)),
        "recurrent": length,
    }


@pytest.mark.parametrize("cell", ["gru", "lstm"])
def test_a_recurrent_layer_takes_a_step_a_position_whichever_way_it_reads(cell):
    for bidirectional in ("true", "false"):
        overrides = [f"model.encoder.cell={cell}", f"model.encoder.bidirectional={bidirectional}"]
        built = composed(*overrides)["recurrent"].build({"d": WIDTH}).double()
        assert [max_path_length(built, n, WIDTH) for n in (1, 2, 7)] == [1, 2, 7]
        chains = [chain_length(built, n, WIDTH) for n in (2, 3, 4, 9)]
        step = chains[1] - chains[0]
        assert step > 0
        assert chains == [chains[0] + (n - 2) * step for n in (2, 3, 4, 9)]


def test_positions_that_nothing_joins_have_no_path(layers):
    alone = layers["restricted"].build({"d": WIDTH, "r": 1})
    assert max_path_length(alone.double(), 3, WIDTH) is None


@pytest.mark.parametrize("name", ["self_attention", "convolutional", "separable", "restricted"])
def test_what_is_computed_side_by_side_is_no_longer_chain(layers, name):
    built = layers[name].build(SIZES).double()
    assert chain_length(built, 3, WIDTH) == chain_length(built, 30, WIDTH)


@pytest.mark.parametrize("steps", [0, 1, 3000])
def test_a_chain_is_as_long_as_it_was_made(steps):
    x = torch.ones(2, dtype=torch.float64, requires_grad=True)
    other = torch.ones(2, dtype=torch.float64, requires_grad=True)
    y = x * 1
    for _ in range(steps):
        y = y.tanh()
    beside = other.tanh().tanh().tanh().tanh().tanh().tanh()  # longer, but not from x
    assert longest_chain(y + beside, x) == steps + 2
    assert longest_chain(beside, x) == 0


def test_dependence_is_direct_and_has_a_direction():
    class Shift(nn.Module):
        def forward(self, x: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
            return torch.cat([x[:, -1:] * 0, x[:, :-1]], dim=1)

    assert np.array_equal(dependent_outputs(Shift(), 4, 2), np.eye(4, k=1, dtype=bool))
