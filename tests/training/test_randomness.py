"""Dropout as a function of (seed, step, piece)."""

import random
from collections.abc import Callable

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from etude.training.randomness import reseed

triples = st.tuples(st.integers(0, 10**9), st.integers(0, 10**9), st.integers(0, 64))


def drawn(triple: tuple[int, int, int]) -> list[int]:
    reseed(*triple)
    return torch.randint(0, 2**31, (4,)).tolist()


@given(one=triples, other=triples)
def test_draws_depend_on_seed_step_and_piece_and_on_nothing_before(one, other):
    first = drawn(one)
    torch.rand(3)
    assert drawn(one) == first
    assert (drawn(other) == first) == (one == other)


@pytest.mark.parametrize("draw", [random.random, np.random.random], ids=["Python", "NumPy"])
def test_parts_that_draw_from_other_generators_are_replayed_too(draw: Callable[[], float]) -> None:
    def drawn(step: int) -> float:
        reseed(1, step, 0)
        return draw()

    assert drawn(7) == drawn(7) != drawn(8)
