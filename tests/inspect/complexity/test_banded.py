"""Banded attention is local attention, and computes r keys a query."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.testing import assert_close
from torch.utils.flop_counter import FlopCounterMode

from etude.inspect.complexity.banded import BandedAttention
from etude.model.attention import LocalAttention
from etude.model.backend import Eager, Sdpa
from etude.model.position import NO_POSITION, Alibi
from etude.model.scale import SqrtDk

SIZES = {"d_model": 6, "heads": 2, "d_k": 3, "d_v": 4, "bias": True}


def pair(window: int, backend: type = Eager) -> tuple[LocalAttention, BandedAttention]:
    """One of each, of the same weights."""
    torch.manual_seed(1)
    local, banded = (
        kind(SqrtDk(d_k=3), backend(dropout=0.0), False, **SIZES, window=window).double()
        for kind in (LocalAttention, BandedAttention)
    )
    banded.load_state_dict(local.state_dict())
    return local, banded


@settings(max_examples=30, deadline=None)
@given(
    window=st.integers(0, 6),
    lengths=st.lists(st.integers(1, 7), min_size=1, max_size=3),
    backend=st.sampled_from([Eager, Sdpa]),
)
def test_values_and_gradients_are_those_of_local_attention(window, lengths, backend):
    longest = max(lengths)
    real = torch.arange(longest) < torch.tensor(lengths)[:, None]  # (B, S)
    mask, weights = real[:, None, None], torch.randn(len(lengths), longest, 6, dtype=torch.float64)
    found = []
    for attention in pair(window, backend):
        x = torch.arange(weights.numel(), dtype=torch.float64).sin().reshape(weights.shape).requires_grad_()
        y = attention(x, x, mask, NO_POSITION)[real]
        found.append((y, *torch.autograd.grad((y * weights[real]).sum(), [x, *attention.parameters()])))
    assert_close(*found, rtol=1e-9, atol=1e-12)


def test_it_costs_what_its_windows_cost():
    _, banded = pair(window=2)
    x = torch.randn(1, 9, 6, dtype=torch.float64)
    with FlopCounterMode(display=False) as counter:
        banded(x, x, torch.ones(1, 1, 1, 9, dtype=torch.bool), NO_POSITION)
    projections = 9 * 6 * 2 * (3 + 3 + 4 + 4)
    windows = 2 * 9 * 5 * (3 + 4)  # heads, queries, r keys of K and values of V
    assert counter.get_total_flops() == 2 * (projections + windows)


def test_what_adds_to_the_scores_of_all_pairs_is_refused():
    _, banded = pair(window=2)
    x = torch.randn(1, 3, 6, dtype=torch.float64)
    with pytest.raises(ValueError, match="banded attention has no scores of all pairs"):
        banded(x, x, torch.ones(1, 1, 1, 3, dtype=torch.bool), Alibi(causal=False, heads=2))
