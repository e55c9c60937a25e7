"""How a report writes numbers."""

import math

import pytest

from etude.report.render.html.table import table
from etude.report.render.rows import Cell, Column, Row, Rows
from etude.report.wording import format_fixed


@pytest.mark.parametrize(
    ("value", "digits", "text"),
    [
        (1234.5, 2, "1,234.50"),
        (-0.5, 1, "−0.5"),
        (999_999_999.0, 2, "999,999,999.00"),
        (2.484e30, 2, "2.48e+30"),
        (-1e9, 1, "−1.0e+09"),
        (3_000_000_000.0, 0, "3,000,000,000"),
        (math.inf, 2, "inf"),
    ],
)
def test_a_number_has_its_digits_and_an_enormous_one_as_many_significant_ones(
    value: float, digits: int, text: str
) -> None:
    assert format_fixed(value, digits) == text


def test_an_enormous_number_sorts_as_what_it_is() -> None:
    columns, cells = [Column("arm", words=True), Column("PPL")], [Cell("A1"), Cell(2e30, 2, half=3e29)]
    drawn = table(Rows("own", "Mine", columns, [Row("A", cells, True)]))
    assert 'data-value="2e+30">2.00e+30 ± 3.00e+29<' in drawn


@pytest.mark.parametrize(
    ("cell", "text"),
    [
        (Cell(), ""),
        (Cell(100_000), "100K"),
        (Cell(8, blank=True), ""),
        (Cell(5.294, 2), "5.29"),
        (Cell(5.294, 2, half=0.104), "5.29 ± 0.10"),
        (Cell(5.294, 2, half=0.004), "5.29 ± <0.01"),
        (Cell(-0.5, 2, sign=True, star=True), "−0.50*"),
        (Cell(0.5, 1, sign=True, marks="†"), "+0.5†"),
        (Cell(2, marks=" of 3"), "2 of 3"),
    ],
)
def test_a_cell_is_read_as_its_number_with_interval_star_and_marks(cell: Cell, text: str) -> None:
    assert cell.text == text
