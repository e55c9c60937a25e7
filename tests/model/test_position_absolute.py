"""What is added to the embeddings, against the formulas."""

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.testing import assert_close

from etude.model.embedding import TiedAll
from etude.model.position import Learned, LearnedUnscaled, Sinusoidal, SinusoidalT2T

PLACES = {"position": st.integers(0, 3000), "pair": st.integers(0, 31)}


@given(**PLACES)
@settings(max_examples=60, deadline=None)
def test_sinusoids_are_interleaved_as_the_paper_prints_them(position, pair):
    added = Sinusoidal(False, d_model=64).add_to_embedding(torch.zeros(1, 1, 64), position)[0, 0]
    angle = position / 10000 ** (2 * pair / 64)
    assert math.isclose(added[2 * pair].item(), math.sin(angle), abs_tol=1e-6)
    assert math.isclose(added[2 * pair + 1].item(), math.cos(angle), abs_tol=1e-6)


@given(**PLACES)
@settings(max_examples=60, deadline=None)
def test_the_published_code_has_sines_first_then_cosines(position, pair):
    added = SinusoidalT2T(False, d_model=64).add_to_embedding(torch.zeros(1, 1, 64), position)[0, 0]
    angle = position * math.exp(-pair * math.log(10000) / 31)
    assert math.isclose(added[pair].item(), math.sin(angle), abs_tol=1e-6)
    assert math.isclose(added[32 + pair].item(), math.cos(angle), abs_tol=1e-6)


def test_the_last_timescale_of_the_published_code_is_exactly_10000():
    added = SinusoidalT2T(False, d_model=512).add_to_embedding(torch.zeros(1, 1, 512), 10000)[0, 0]
    assert_close(added[[255, 511]], torch.tensor([math.sin(1), math.cos(1)]))


@pytest.mark.parametrize("kind", [Sinusoidal, SinusoidalT2T])
def test_two_dimensions_hold_one_pair_of_timescale_one(kind):
    added = kind(False, d_model=2).add_to_embedding(torch.zeros(1, 1, 2), 5)[0, 0]
    assert_close(added, torch.tensor([math.sin(5), math.cos(5)]))


@pytest.mark.parametrize("kind", [Sinusoidal, SinusoidalT2T])
def test_sinusoids_refuse_an_odd_width(kind):
    with pytest.raises(ValueError, match="d_model must be even, not 7"):
        kind(False, d_model=7)


def test_learned_positions_begin_as_large_as_words():
    """Both have unit variance, so that learning them or not is all that changes with the scheme."""
    x = TiedAll(512, d_model=64).source(torch.arange(512)[None])
    added = Learned(False, d_model=64, max_length=512).add_to_embedding(torch.zeros_like(x), 0)
    assert_close(added.std(), x.std(), rtol=0.05, atol=0)


def test_learned_positions_are_rows_times_the_root_of_d_model_or_rows():
    x = torch.randn(2, 3, 16)
    for kind, factor in ((Learned, 4), (LearnedUnscaled, 1)):
        position = kind(False, d_model=16, max_length=9)
        assert_close(position.add_to_embedding(x, 2), x + factor * position.table.weight[2:5])


def test_a_learned_table_refuses_what_lies_behind_it():
    position = Learned(False, d_model=4, max_length=6)
    position.add_to_embedding(torch.zeros(1, 6, 4), 0)
    with pytest.raises(ValueError, match=r"7 positions does not fit the learned table of 6.*model.position.max_length"):
        position.add_to_embedding(torch.zeros(1, 1, 4), 6)
