"""Figures as they are printed."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from etude.inspect.plan.device import Device
from etude.inspect.plan.table import format_hours, format_magnitude, format_price, plan_notes

UNITS = {"": 1, "k": 1e3, "M": 1e6, "G": 1e9, "T": 1e12, "P": 1e15, "E": 1e18}


@given(st.floats(min_value=1, max_value=9.9e20))
def test_a_magnitude_has_three_digits_and_reads_back_as_the_number(number):
    text = format_magnitude(number)
    digits = text.rstrip("kMGTPE")
    assert float(digits) * UNITS[text.removeprefix(digits)] == pytest.approx(number, rel=0.005)
    assert len(text) <= 5


def test_nothing_and_nobody_knows_are_told_apart():
    assert (format_magnitude(0), format_magnitude(None)) == ("0", "?")


@pytest.mark.parametrize(
    ("number", "text"), [(0, "0:00"), (1 / 60, "0:01"), (0.999, "1:00"), (1.5, "1:30"), (123.25, "123:15")]
)
def test_hours_have_minutes(number, text):
    assert format_hours(number) == text


@pytest.mark.parametrize(("number", "text"), [(0.0, "–"), (0.004, "0.00"), (7.5, "7.50"), (1234.5, "1,234")])
def test_dollars_have_cents_where_there_are_few(number, text):
    assert format_price(number) == text


def test_choices_that_change_nothing_are_named_with_their_arms():
    notes = plan_notes([], [], {}, {"b": ["model/norm=rms"]}, 0.1, Device("cpu", 1.0, 1.0, 0.0))
    assert "Choices that change nothing, as the model has no such part: b (model/norm=rms)." in notes
