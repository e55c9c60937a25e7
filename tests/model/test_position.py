"""Position schemes against the equations, and what they can tell apart."""

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.testing import assert_close

from etude.model.position import Learned, NoPosition, Sinusoidal


@given(position=st.integers(0, 3000), pair=st.integers(0, 31))
@settings(max_examples=60, deadline=None)
def test_sinusoids_are_interleaved_as_the_paper_prints_them(position, pair):
    added = Sinusoidal(False, d_model=64).embed(torch.zeros(1, 1, 64), position)[0, 0]
    angle = position / 10000 ** (2 * pair / 64)
    assert math.isclose(added[2 * pair].item(), math.sin(angle), abs_tol=1e-6)
    assert math.isclose(added[2 * pair + 1].item(), math.cos(angle), abs_tol=1e-6)


def test_sinusoids_refuse_an_odd_width():
    with pytest.raises(ValueError, match="d_model must be even, not 7"):
        Sinusoidal(False, d_model=7)


def test_sinusoids_go_on_past_the_first_table():
    position = Sinusoidal(False, d_model=8)
    late = position.embed(torch.zeros(1, 1, 8), 1000)
    assert_close(late[0, 0, :2], torch.tensor([math.sin(1000), math.cos(1000)]), atol=1e-5, rtol=0)


@pytest.mark.parametrize("make", [lambda: Sinusoidal(True, d_model=8), lambda: Learned(True, d_model=8, max_length=20)])
def test_embedding_from_a_start_continues_the_whole(make):
    position, x = make(), torch.randn(2, 9, 8)
    whole = position.embed(x, 0)
    assert_close(position.embed(x[:, 4:], 4), whole[:, 4:])


def test_a_learned_table_refuses_what_lies_behind_it():
    position = Learned(False, d_model=4, max_length=6)
    position.embed(torch.zeros(1, 6, 4), 0)
    with pytest.raises(ValueError, match=r"7 positions does not fit the learned table of 6.*model.position.max_length"):
        position.embed(torch.zeros(1, 1, 4), 6)


def test_without_positions_the_encoder_sees_a_bag_of_words(tiny, sentences):
    model, (source, _, _) = tiny("model/position=none"), sentences
    order, mask = torch.tensor([3, 1, 6, 0, 2, 5, 4]), torch.ones(1, 7, dtype=torch.bool)
    plain = model.encode(source[:1], mask)
    assert_close(model.encode(source[:1, order], mask), plain[:, order], atol=1e-5, rtol=1e-5)
    assert isinstance(model.source_position, NoPosition)


@pytest.mark.parametrize("position", ["sinusoidal", "learned"])
def test_with_positions_the_encoder_sees_order(tiny, sentences, position):
    model, (source, _, _) = tiny(f"model/position={position}"), sentences
    order, mask = torch.tensor([3, 1, 6, 0, 2, 5, 4]), torch.ones(1, 7, dtype=torch.bool)
    plain = model.encode(source[:1], mask)
    assert (model.encode(source[:1, order], mask) - plain[:, order]).abs().max() > 0.01
