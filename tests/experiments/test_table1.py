"""Table 1: what the layers cost is what the paper says, wherever its term outweighs the others."""

import pytest

from etude.inspect.complexity.layers import Layer, compose_layers
from etude.inspect.complexity.study import measure_layer
from etude.report.layers.tables import fits
from etude.runs.measurements import Found
from etude.studies.measured import load_measured

SIZES = {"n": [64, 128, 256], "d": [8, 16, 32], "k": [9, 17, 33], "r": [9, 17, 33]}
STUDY = load_measured("table1")


@pytest.fixture(scope="module", params=[row.name for row in STUDY.rows])
def found(request) -> tuple[Layer, Found]:
    layer = next(layer for layer in compose_layers(STUDY) if layer.row.name == request.param)
    return layer, measure_layer(layer, SIZES, repeats=1)


def test_every_exponent_is_within_a_seventh_of_what_is_expected(found):
    layer, measured = found
    fitted = [fit for fit in fits(layer.row, measured) if fit.expected is not None]
    assert len(fitted) == len(layer.row.flops) + 2
    for fit in fitted:
        for symbol, expected in fit.expected.items():
            assert fit.found[symbol].value == pytest.approx(expected, abs=0.15), (fit.of, fit.where, symbol)


def test_exponents_of_the_paper_are_expected_somewhere():
    """The paper's O(.), its terms read one by one."""
    powers = str.maketrans("²", "2")
    for row in STUDY.rows:
        for term in row.paper["complexity"].translate(powers).split(" + "):
            exponents = {symbol[0]: int(symbol[1:] or 1) for symbol in term.split()}
            assert any(
                exponents == {symbol: power for symbol, power in expected.items() if power}
                for expected in row.flops.values()
            ), (row.name, term)
        for printed, expected in ((row.paper["sequential"], row.operations), (row.paper["path"], row.path)):
            above, _, below = printed.rpartition("contiguous ")[2].partition(" / ")
            told = {above: 1} | ({below: -1} if below else {}) if above != "1" else {}
            assert told == {symbol: power for symbol, power in expected.items() if power}


def test_at_pocket_scale_it_is_smaller_than_in_full():
    pocket, full = (load_measured("table1", [f"scale={scale}"]).sizes for scale in ("pocket", "full"))
    assert load_measured("table1").sizes == pocket
    assert max(pocket["n"]) * max(pocket["d"]) < max(full["n"]) * max(full["d"])
