"""Cross-entropy in blocks is PyTorch's, its gradient too, however many rows a block has."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.nn import functional as F
from torch.testing import assert_close

from etude.training import cross_entropy
from etude.training.cross_entropy import CrossEntropy

IGNORED = 0


def drawn(rows, vocab_size, seed, dtype=torch.float64):
    generator = torch.Generator().manual_seed(seed)
    logits = (5 * torch.randn(rows, vocab_size, generator=generator, dtype=torch.float64)).to(dtype)
    return logits.requires_grad_(), torch.randint(vocab_size, (rows,), generator=generator)


def with_gradient(cost, logits):
    return cost, *torch.autograd.grad(cost, logits)


@settings(max_examples=60, deadline=None)
@given(
    rows=st.integers(1, 9),
    vocab_size=st.integers(2, 12),
    smoothing=st.sampled_from([0.0, 0.1, 0.9]),
    block=st.integers(1, 120),
    seed=st.integers(0, 99),
)
def test_it_is_pytorchs_for_every_block(rows, vocab_size, smoothing, block, seed):
    logits, targets = drawn(rows, vocab_size, seed)
    plain = F.cross_entropy(logits, targets, ignore_index=IGNORED, label_smoothing=smoothing, reduction="sum")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(cross_entropy, "_BLOCK", block)
        found = CrossEntropy.apply(logits, targets, smoothing, IGNORED)
    assert_close(with_gradient(found, logits), with_gradient(plain, logits))


def test_what_comes_after_it_scales_the_gradient_and_may_ask_twice():
    logits, targets = drawn(5, 7, 1)
    cost = CrossEntropy.apply(logits, targets, 0.1, IGNORED)
    [once] = torch.autograd.grad(cost, logits, retain_graph=True)
    [thrice] = torch.autograd.grad(3 * cost, logits)
    assert_close(thrice, 3 * once)


def test_a_probability_too_small_for_a_number_costs_what_it_should():
    logits = torch.tensor([[0.0, -300.0, 300.0]])
    assert CrossEntropy.apply(logits, torch.tensor([1]), 0.0, IGNORED) == 600
    assert CrossEntropy.apply(torch.tensor([[0.0, -torch.inf, 0.0]]), torch.tensor([2]), 0.0, IGNORED).isfinite()


def test_single_precision_is_as_exact_as_pytorchs():
    logits, targets = drawn(300, 2000, 2, torch.float32)
    exact = F.cross_entropy(logits.double(), targets, label_smoothing=0.1, reduction="sum")
    errors = [
        abs(cost.item() / exact.item() - 1)
        for cost in (
            CrossEntropy.apply(logits, targets, 0.1, -1),
            F.cross_entropy(logits, targets, label_smoothing=0.1, reduction="sum"),
        )
    ]
    assert errors[0] <= 2 * errors[1] + 1e-7


def test_a_divergence_stays_one():
    assert CrossEntropy.apply(torch.tensor([[torch.nan, 1.0]]), torch.tensor([1]), 0.1, IGNORED).isnan()
