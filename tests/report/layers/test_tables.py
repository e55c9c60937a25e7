"""Costs that follow a power law are told as that law, on the terminal, in the picture and on the page."""

import itertools
import re
from xml.etree import ElementTree

import pytest

from etude.report.layers.chart import draw_layers
from etude.report.layers.page import document
from etude.report.layers.tables import fits, format_exponents, make_tables, notes, symbol_of
from etude.runs.measurements import Found
from etude.studies.measured import MeasuredStudy, Row, load_measured

STUDY = load_measured("table1", ["n=8,16,32", "d=4,8", "k=3,9,27", "r=5,15"])
MACHINE = {"processor": "abacus", "cores": 2, "threads": 1, "torch": "9.9"}
LAWS = {  # planted: exponents of n, d and the window
    "flops": (2, 1, 0.5),
    "forward": (1.5, -0.25, 2),
    "backward": (1.5, -0.25, 2),
    "bytes": (1, 1, -1),
    "operations": (0.5, 0, 0),
    "path": (1, 0, -1),
}


def planted(row: Row) -> Found:
    """A layer whose every cost is 1000 times a product of powers."""
    symbol = symbol_of(row)

    def cost(of: str, cell: dict[str, int]) -> float:
        powers = dict(zip(("n", "d", symbol), LAWS[of], strict=True))
        value = 1000.0
        for size, at in cell.items():
            value *= at ** powers[size]
        return value

    def cells(*symbols: str) -> list[dict[str, int]]:
        own = [one for one in (*symbols, symbol) if one]
        return [dict(zip(own, at, strict=True)) for at in itertools.product(*(STUDY.sizes[one] for one in own))]

    first = [cell for cell in cells("n") if not symbol or cell[symbol] == STUDY.sizes[symbol][0]]
    return {
        "machine": MACHINE,
        "costs": [
            cell | {of: cost(of, cell) for of in ("flops", "forward", "backward", "bytes")} for cell in cells("n", "d")
        ],
        "operations": [cell | {"operations": cost("operations", cell)} for cell in first],
        "path": [cell | {"path": cost("path", cell)} for cell in cells("n")],
        "flops": {where: [c | {"flops": cost("flops", c)} for c in cells("n", "d")] for where in row.flops},
    }


@pytest.fixture
def kept() -> dict[str, Found]:
    return {row.name: planted(row) for row in STUDY.rows}


@pytest.mark.parametrize("row", STUDY.rows, ids=lambda row: row.name)
def test_a_power_law_comes_back_from_what_was_kept(row):
    laws = LAWS | {"FLOPs": LAWS["flops"], "seconds": LAWS["forward"]}
    for fit in fits(row, planted(row)):
        for symbol, power in zip(("n", "d", symbol_of(row)), laws[fit.of], strict=True):
            if symbol in fit.found:
                assert fit.found[symbol].value == pytest.approx(power, abs=1e-9), (fit.of, symbol)
        has = {"n", "d", symbol_of(row)} - {None}
        assert fit.found.keys() == {"operations": {"n"}, "path": has - {"d"}}.get(fit.of, has)


def test_the_tables_say_what_was_found_beside_the_paper(kept):
    exponents, costs, structure = make_tables(STUDY, kept)
    law = {(layer, cells[2], cells[3]): cells for layer, cells in named(exponents.rows)}
    told = law["separable", "FLOPs", "k ≫ d"]
    assert told[4:] == ["k n d", "2.00 ± 0.00", "1.00 ± 0.00", "0.50 ± 0.00"]
    assert law["convolutional", "path", "the longest"][4:] == ["n / k", "1.00 ± 0.00", "", "-1.00 ± 0.00"]
    assert law["self_attention", "operations", "in a chain"][4:] == ["1", "0.50 ± 0.00", "", ""]
    assert [cells[1] for layer, cells in named(costs.rows) if layer == "restricted"] == ["r = 5", "r = 15"]
    assert "n = 32, d = 8" in costs.title
    assert all(len(cells) == len(table.headers) for table in (exponents, costs, structure) for cells in table.rows)
    assert [cells[0] for cells in structure.rows] == [row.name for row in STUDY.rows]
    assert structure.rows[4][-1] == "O(n / r) at r = 5"


def named(rows: list[list[str]]) -> list[tuple[str, list[str]]]:
    """Every row with the layer that it is about."""
    layer, found = "", []
    for cells in rows:
        layer = cells[0] or layer
        found.append((layer, cells))
    return found


def test_positions_that_nothing_joins_are_infinitely_far_apart(kept):
    for one in kept["restricted"]["path"]:
        one["path"] = None
    _, costs, structure = make_tables(STUDY, kept)
    assert structure.rows[4][3] == "∞, ∞, ∞"
    assert costs.rows[-1][-1] == "∞"
    draw_layers(STUDY, kept)


def test_what_is_missing_is_named(kept):
    del kept["recurrent"]
    first, *_, last = notes(STUDY, kept)
    assert "abacus (2 cores, 1 thread, torch 9.9)" in first
    assert last == "Not measured yet: recurrent; the same sweep, typed again, goes on."
    assert [cells[0] for cells in make_tables(STUDY, kept)[2].rows] == [
        "self_attention",
        "convolutional",
        "separable",
        "restricted",
    ]


def test_exponents_are_written_as_in_the_paper():
    assert format_exponents({"n": 2, "d": 1}) == "n² d"
    assert format_exponents({"n": 1, "d": 2, "k": 1}) == "k n d²"
    assert format_exponents({"n": 1, "k": -1}) == "n / k"
    assert format_exponents({"n": 0}) == "1"
    assert format_exponents({"k": -2}) == "1 / k²"


def test_on_logarithmic_axes_a_power_law_is_a_straight_line(kept):
    lines = ElementTree.fromstring(draw_layers(STUDY, kept)).findall(".//{*}polyline")
    windows = sum(symbol_of(row) is not None for row in STUDY.rows)
    assert len(lines) == 3 * (5 + 5 + windows) + 5 + 5 + windows
    for line in lines:
        points = [tuple(map(float, point.split(","))) for point in line.attrib["points"].split()]
        (x0, y0), *_, (x1, y1) = points
        assert x1 > x0
        for x, y in points:
            assert y == pytest.approx(y0 + (y1 - y0) * (x - x0) / (x1 - x0), abs=0.2)


def test_the_page_holds_the_tables_and_the_plots_and_asks_nobody(kept):
    study = MeasuredStudy("mine", "<b>Mine</b>", STUDY.rows, STUDY.sizes, 5, ["model.encoder.cell=lstm"])
    page = document(study, kept, "etude report mine --html a&b.html")
    assert "<h1>&lt;b&gt;Mine&lt;/b&gt;</h1>" in page
    assert "light-dark(" in page
    assert page.count("<table>") == 3
    assert draw_layers(study, kept) in page
    assert not re.search(r"<script|https?://(?!www\.w3\.org/2000/svg)|url\(", page)
    assert all(f'<th scope="row">{row.name}</th>' in page for row in STUDY.rows)
    assert "with model.encoder.cell=lstm" in page
    assert "Made by <code>etude report mine --html a&amp;b.html</code>" in page


def test_a_regime_that_the_study_names_no_more_is_shown_without_an_expectation(kept):
    row = STUDY.rows[0]
    kept[row.name]["flops"] = {"of before": next(iter(kept[row.name]["flops"].values()))}
    first = next(fits(row, kept[row.name]))
    assert (first.where, first.expected) == ("of before", None)
    assert make_tables(STUDY, kept)[0].rows[0][3:5] == ["of before", ""]
