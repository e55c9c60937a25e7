"""Dropout: its rate, its expectation, and that its four-in-one draws are as good as single ones."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.testing import assert_close

from etude.model.dropout import Dropout


@given(p=st.floats(0.01, 0.95), size=st.integers(1, 9))
@settings(max_examples=20, deadline=None)
def test_the_share_of_zeros_is_p_and_the_mean_stays(p, size):
    torch.manual_seed(size)
    dropped = Dropout(p)(torch.ones(10007, size))
    zeros = (dropped == 0).float().mean().item()
    error = 5 * (p * (1 - p) / dropped.numel()) ** 0.5
    assert abs(zeros - p) < error + 1e-5
    assert abs(dropped.mean().item() - 1) < error / (1 - p) + 1e-5


def test_neighbours_that_share_a_draw_are_independent():
    torch.manual_seed(1)
    kept = (Dropout(0.5)(torch.ones(4, 250_000).T.contiguous()) != 0).float()
    correlation = torch.corrcoef(kept.T)
    assert (correlation - torch.eye(4)).abs().max() < 0.01


def test_what_is_kept_is_divided_and_its_gradient_with_it():
    torch.manual_seed(1)
    x = torch.randn(50, 20, requires_grad=True)
    dropped = Dropout(0.25)(x)
    dropped.sum().backward()
    kept = dropped != 0
    assert_close(dropped[kept], x[kept] / 0.75)
    assert_close(x.grad, kept / 0.75)


def test_evaluation_and_p_zero_change_nothing():
    x = torch.randn(5, 5)
    assert Dropout(0.5).eval()(x) is x
    assert Dropout(0.0)(x) is x


@pytest.mark.parametrize("p", [0.99999, 0.999999, 1 - 1e-12])
def test_a_probability_next_to_one_still_leaves_finite_numbers_with_the_same_mean(p):
    """Sixteen bits cannot tell it from one; the one element in 65536 that is kept is multiplied by as much."""
    torch.manual_seed(1)
    dropped = Dropout(p)(torch.ones(4_000_000))
    assert dropped.isfinite().all()
    assert 30 < dropped.count_nonzero() < 100
    assert abs(dropped.mean().item() - 1) < 0.6


@pytest.mark.parametrize("p", [-0.1, 1.0, 2])
def test_an_impossible_probability_is_refused(p):
    with pytest.raises(ValueError, match=r"must lie in \[0, 1\)"):
        Dropout(p)


def test_a_compiler_is_given_the_same_draws():
    dropout, x = Dropout(0.3), torch.randn(7, 5)
    torch.manual_seed(1)
    dropped = dropout(x)
    torch._dynamo.reset()
    torch.manual_seed(1)
    assert torch.equal(torch.compile(dropout, backend="eager", fullgraph=True)(x), dropped)


@pytest.mark.slow
def test_compiled_code_learns_from_the_draws_that_it_was_made_with():
    """A backward pass that drew once more, to spare memory, would teach what was dropped."""
    dropout = Dropout(0.5)
    x = torch.linspace(-1, 1, 1200, dtype=torch.float64).view(40, 30).requires_grad_()
    torch._dynamo.reset()
    dropped = torch.compile(lambda x: dropout(x.exp()).cos(), dynamic=True)(x)
    dropped.sum().backward()
    kept = dropped != 1
    assert 0.4 < kept.float().mean() < 0.6
    assert_close(x.grad, torch.where(kept, -(x.exp() / 0.5).sin() * x.exp() / 0.5, 0.0).detach())
