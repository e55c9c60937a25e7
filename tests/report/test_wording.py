"""How a report writes numbers."""

import math

import pytest

from etude.report.render.html.table import table
from etude.report.render.rows import Column, Row, Rows
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
    cell = f"{format_fixed(2e30, 2)} ± {format_fixed(3e29, 2)}"
    drawn = table(Rows("own", "Mine", [Column("arm", words=True), Column("PPL")], [Row("A", ["A1", cell], True)]))
    assert 'data-value="2e+30"' in drawn
