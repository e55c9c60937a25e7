"""Table 1: what the layers cost is what the paper says, wherever its term outweighs the others."""

import math
import sys
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn
from torch.testing import assert_close

from etude.model.attention import LocalAttention
from etude.model.backend import Eager
from etude.model.position import NO_POSITION, Alibi
from etude.model.scale import SqrtDk

FOLDER = Path(__file__).parents[2] / "experiments" / "table1"
sys.path.append(str(FOLDER))  # as Python does for a script
table1, banded, dependencies, chart = map(import_module, ("measure", "banded", "dependencies", "chart"))
LAYERS = {layer.name: layer for layer in table1.LAYERS}
WIDTH = 8
SIZES = {"d": WIDTH, "k": 3, "r": 9}
JOINED = ["self_attention", "convolutional", "separable", "restricted"]


@pytest.fixture(autouse=True)
def alike() -> None:
    torch.manual_seed(3)


@pytest.mark.parametrize("layer", LAYERS.values(), ids=LAYERS)
def test_every_exponent_is_within_a_seventh_of_what_is_expected(layer: Any) -> None:
    sizes = {"n": [64, 128, 256], "d": [8, 16, 32], "k": [9, 17, 33], "r": [9, 17, 33]}
    for of, where, expected, found in table1.fits(layer, table1.measure_layer(layer, sizes, repeats=1)):
        for symbol, exponent in (expected or {}).items():
            assert found[symbol][0] == pytest.approx(exponent, abs=0.15), (of, where, symbol)


@pytest.mark.parametrize("layer", LAYERS.values(), ids=LAYERS)
def test_exponents_of_the_paper_are_expected_somewhere(layer: Any) -> None:
    """The paper's O(.), its terms read one by one."""
    for term in layer.complexity.translate(str.maketrans("²", "2")).split(" + "):
        exponents = {symbol[0]: int(symbol[1:] or 1) for symbol in term.split()}
        assert exponents in [{s: power for s, power in one.items() if power} for one in layer.flops.values()]
    for printed, expected in ((layer.sequential, layer.chain), (layer.path, layer.reach)):
        assert printed.rpartition("contiguous ")[2] == table1.format_exponents(expected)


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
def test_flops_are_two_for_each_product(name: str, products: Callable[..., int], sizes: dict[str, int]) -> None:
    assert table1.count_flops(LAYERS[name].build(sizes, "meta"), sizes["n"], sizes["d"]) == 2 * products(**sizes)


def stack(layers: list[nn.Module]) -> Callable[..., torch.Tensor]:
    def apply(x: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        for layer in layers:
            x = layer(x, mask)
        return x

    return apply


@pytest.mark.parametrize("name", JOINED)
def test_so_many_layers_and_not_one_less_join_all_positions(name: str) -> None:
    path = dependencies.max_path_length(LAYERS[name].build(SIZES).double(), 11, WIDTH)
    layers = [LAYERS[name].build(SIZES).double() for _ in range(path)]
    assert dependencies.dependent_outputs(stack(layers), 11, WIDTH).all()
    assert not dependencies.dependent_outputs(stack(layers[1:]), 11, WIDTH).all()


@pytest.mark.parametrize(("length", "k", "r"), [(2, 3, 9), (9, 5, 3), (20, 9, 17)])
def test_a_contiguous_window_reaches_so_far_in_every_layer(length: int, k: int, r: int) -> None:
    built = {name: layer.build({"d": WIDTH, "k": k, "r": r}).double() for name, layer in LAYERS.items()}
    assert {name: dependencies.max_path_length(one, length, WIDTH) for name, one in built.items()} == {
        "self_attention": 1,
        "convolutional": math.ceil((length - 1) / (k // 2)),  # so many neighbours on either side
        "separable": math.ceil((length - 1) / (k // 2)),
        "restricted": math.ceil((length - 1) / (r // 2)),
        "recurrent": length,
    }


def test_positions_that_nothing_joins_have_no_path() -> None:
    alone = LAYERS["restricted"].build({"d": WIDTH, "r": 1}).double()
    assert dependencies.max_path_length(alone, 3, WIDTH) is None


@pytest.mark.parametrize("name", LAYERS)
def test_only_in_the_recurrent_layer_operations_wait_for_those_of_other_positions(name: str) -> None:
    chains = [dependencies.chain_length(LAYERS[name].build(SIZES).double(), n, WIDTH) for n in (2, 3, 9)]
    step = chains[1] - chains[0]
    assert chains[2] == chains[0] + 7 * step
    assert (step > 0) == (name == "recurrent")


@pytest.mark.parametrize("steps", [0, 3000])
def test_a_chain_is_as_long_as_it_was_made(steps: int) -> None:
    x, other = (torch.ones(2, dtype=torch.float64, requires_grad=True) for _ in range(2))
    y = x * 1
    for _ in range(steps):
        y = y.tanh()
    beside = other.tanh().tanh().tanh().tanh().tanh().tanh()  # longer, but not from x
    assert dependencies.longest_chain(y + beside, x) == steps + 2
    assert dependencies.longest_chain(beside, x) == 0


def test_a_power_law_is_fitted_exactly() -> None:
    points = [{"n": n, "d": d, "cost": 3 * n**2 * d**-0.5} for n in (2, 4, 8) for d in (3, 9)]
    found = table1.fit(points, "cost")
    assert found["n"] == pytest.approx((2, 0), abs=1e-9)
    assert found["d"] == pytest.approx((-0.5, 0), abs=1e-9)


@pytest.mark.parametrize("window", [0, 2, 6])
def test_banded_attention_has_the_values_and_gradients_of_local_attention(window: int) -> None:
    sizes = {"d_model": 6, "heads": 2, "d_k": 3, "d_v": 4, "bias": True, "window": window}
    kinds = (LocalAttention, banded.BandedAttention)
    local, ours = (kind(SqrtDk(d_k=3), Eager(dropout=0.0), False, **sizes).double() for kind in kinds)
    ours.load_state_dict(local.state_dict())
    real = torch.arange(7) < torch.tensor([7, 4, 1])[:, None]  # (B, S)
    given, weights = torch.randn(3, 7, 6).double(), torch.randn(3, 7, 6).double()
    found = []
    for attention in (local, ours):
        x = given.clone().requires_grad_()
        y = attention(x, x, real[:, None, None], NO_POSITION)[real]
        found.append((y, *torch.autograd.grad((y * weights[real]).sum(), [x, *attention.parameters()])))
    assert_close(*found, rtol=1e-9, atol=1e-12)
    with pytest.raises(ValueError, match="banded attention has no scores of all pairs"):
        ours(given, given, real[:, None, None], Alibi(causal=False, heads=2))


def test_the_script_measures_shows_and_draws_every_layer(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    sizes = ["--n", "4", "8", "16", "--d", "8", "16", "--k", "3", "5", "--r", "3", "5", "--repeats", "1"]
    table1.main([*sizes, "--save", str(tmp_path / "new.json"), "--svg", str(tmp_path / "new.svg")])
    shown = capsys.readouterr().out.split("\n\n")
    assert all(name in table for table in shown[:3] for name in LAYERS)
    assert (tmp_path / "new.svg").read_text().count("<polyline") == 3 * (5 + 5 + 3) + 5 + 5 + 3
    table1.main(["--read", str(tmp_path / "new.json")])
    assert shown[1:] == capsys.readouterr().out.split("\n\n")[1:]


def test_the_tables_and_the_picture_of_the_readme_are_those_of_the_record(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    table1.main(["--read", str(FOLDER / "record.json"), "--svg", str(tmp_path / "table1.svg")])
    printed = "\n".join(line.rstrip() for line in capsys.readouterr().out.splitlines())
    told = [one.strip() for one in (FOLDER / "README.md").read_text().split("```")[1::2] if "───" in one]
    assert len(told) == 2
    assert all(block in printed for block in told)
    assert (tmp_path / "table1.svg").read_bytes() == (FOLDER / "table1.svg").read_bytes()
