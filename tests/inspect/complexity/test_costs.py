"""FLOPs against formulas worked out by hand."""

import pytest

from etude.inspect.complexity.costs import count_flops, measure_costs
from etude.inspect.complexity.layers import Layer, compose_layers
from etude.studies.measured import load_measured


@pytest.fixture(scope="module")
def layers() -> dict[str, Layer]:
    return {layer.row.name: layer for layer in compose_layers(load_measured("table1"))}


@pytest.mark.parametrize(
    ("name", "products"),
    [
        ("self_attention", lambda n, d, k, r: 4 * n * d * d + 2 * n * n * d),
        ("restricted", lambda n, d, k, r: 4 * n * d * d + 2 * n * r * d),
        ("convolutional", lambda n, d, k, r: k * n * d * 2 * d),  # twice as many channels, half of which are gates
        ("separable", lambda n, d, k, r: k * n * d + n * d * 2 * d),
        ("recurrent", lambda n, d, k, r: 2 * 3 * n * (d * d // 2 + d * d // 4)),  # two directions, three gates
    ],
)
@pytest.mark.parametrize("sizes", [{"n": 16, "d": 8, "k": 5, "r": 9}, {"n": 7, "d": 32, "k": 3, "r": 1}])
def test_flops_are_two_for_each_product(layers, name, products, sizes):
    own = {symbol: sizes[symbol] for symbol in layers[name].row.symbols}
    assert count_flops(layers[name].build(own, "meta"), sizes["n"], sizes["d"]) == 2 * products(**sizes)


def test_every_cell_is_timed_and_counted(layers):
    cells = [{"n": n, "d": d, "k": k} for n in (4, 8) for d in (8, 16) for k in (3, 5)]
    costs = measure_costs(layers["convolutional"], cells, repeats=2)
    assert [{symbol: cost[symbol] for symbol in "ndk"} for cost in costs] == cells
    assert all(cost["forward"] > 0 and cost["backward"] > 0 and cost["bytes"] > 0 for cost in costs)
    assert [cost["flops"] for cost in costs] == [2 * c["k"] * c["n"] * c["d"] * 2 * c["d"] for c in cells]
