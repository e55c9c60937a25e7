"""FLOPs and exponents against formulas worked out by hand."""

import math

import numpy as np
import pytest
import torch
from scipy.stats import linregress
from scipy.stats import t as student

from etude.inspect.complexity.costs import count_flops, count_saved_bytes, measure
from etude.inspect.complexity.fits import fit_exponents
from etude.inspect.complexity.layers import Layer, load_layers
from etude.inspect.complexity.study import fit_flops
from etude.paths import shipped
from etude.yaml_file import read_yaml

ROWS = read_yaml(shipped("experiments") / "table1" / "layers.yaml")
WHERE = [(name, where) for name, row in ROWS.items() for where in row["flops"]]


@pytest.fixture(scope="module")
def layers() -> dict[str, Layer]:
    return {layer.name: layer for layer in load_layers(["model.encoder.kernel=5"])}


@pytest.mark.parametrize(
    ("name", "products"),
    [
        ("self_attention", lambda n, d: 4 * n * d * d + 2 * n * n * d),
        ("restricted", lambda n, d: 4 * n * d * d + 2 * n * 9 * d),
        ("convolutional", lambda n, d: 5 * n * d * 2 * d),  # twice as many channels, half of which are gates
        ("separable", lambda n, d: 5 * n * d + n * d * 2 * d),
        ("recurrent", lambda n, d: 2 * 3 * n * (d * d // 2 + d * d // 4)),  # two directions, three gates
    ],
)
@pytest.mark.parametrize(("n", "d"), [(16, 8), (7, 32)])
def test_flops_are_two_for_each_product(layers, name, products, n, d):
    assert count_flops(layers[name].build(d, "meta"), n, d) == 2 * products(n, d)


@pytest.mark.parametrize(("name", "where"), WHERE)
def test_where_one_size_outweighs_exponents_are_the_papers(layers, name, where):
    fit = fit_flops(layers[name], where, [8, 16, 32], [8, 16, 32])
    for size in "nd":
        assert fit[size]["value"] == pytest.approx(fit["expected"][size], abs=0.15)
        assert fit[size]["low"] <= fit[size]["value"] <= fit[size]["high"]


def test_a_fit_finds_the_exponents_that_made_the_points():
    points = [(n, d, 7.0 * n**1.5 * d**0.25) for n in (2, 4, 8) for d in (3, 9)]
    found = fit_exponents(points)
    assert (found["n"].value, found["d"].value) == pytest.approx((1.5, 0.25))
    assert (found["n"].low, found["n"].high) == pytest.approx((1.5, 1.5))


def test_of_one_size_the_interval_is_that_of_a_regression_line():
    noise = np.random.default_rng(1).normal(size=6)
    points = [(n, 4, math.exp(math.log(n) + e)) for n, e in zip((1, 2, 4, 8, 16, 32), noise, strict=True)]
    line = linregress(np.log([p[0] for p in points]), np.log([p[2] for p in points]))
    half = student.ppf(0.975, 4) * line.stderr
    found = fit_exponents(points)
    assert found.keys() == {"n"}
    assert (found["n"].value, found["n"].low, found["n"].high) == pytest.approx(
        (line.slope, line.slope - half, line.slope + half)
    )


def test_with_as_many_points_as_unknowns_there_is_no_interval():
    assert fit_exponents([(2, 4, 1.0), (4, 4, 2.0)])["n"].low is None
    assert fit_exponents([(2, 4, 1.0)]) == {}


def test_kept_bytes_are_what_a_backward_pass_needs():
    layer = torch.nn.Sequential(torch.nn.Linear(4, 6), torch.nn.Tanh(), torch.nn.Linear(6, 2))
    x, nothing = torch.randn(3, 4, requires_grad=True), torch.zeros(())
    layer.forward = lambda h, mask: torch.nn.Sequential(*layer)(h)  # type: ignore[method-assign]
    assert count_saved_bytes(layer, x, nothing) == 4 * 3 * 6  # the output of tanh, kept once for two


def test_every_cell_is_timed(layers):
    [costs] = measure([layers["convolutional"]], [4, 8], [8, 16], repeats=2)
    assert [(cost.n, cost.d) for cost in costs] == [(4, 8), (4, 16), (8, 8), (8, 16)]
    assert all(cost.forward > 0 and cost.backward > 0 and cost.bytes > 0 for cost in costs)
