"""The loss against its definition and against PyTorch."""

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.nn import functional as F
from torch.testing import assert_close

from etude.training.loss import LabelSmoothing

PAD = 0


def by_definition(logits: torch.Tensor, targets: torch.Tensor, smoothing: float) -> float:
    """-sum over real tokens of sum over pieces q(piece) log p(piece), q = (1 - eps) [true] + eps / V."""
    total = 0.0
    for row, target in zip(logits.flatten(0, 1).tolist(), targets.flatten().tolist(), strict=True):
        if target != PAD:
            log_z = math.log(sum(math.exp(value) for value in row))
            for piece, value in enumerate(row):
                q = smoothing / len(row) + (1 - smoothing) * (piece == target)
                total -= q * (value - log_z)
    return total


@given(smoothing=st.floats(0, 0.9), seed=st.integers(0, 50))
@settings(max_examples=30, deadline=None)
def test_the_loss_is_its_definition_summed_over_real_tokens(smoothing, seed):
    generator = torch.Generator().manual_seed(seed)
    logits = torch.randn(2, 3, 7, generator=generator)
    targets = torch.randint(0, 7, (2, 3), generator=generator)
    ours = LabelSmoothing(PAD, smoothing=smoothing)(logits, targets).item()
    assert math.isclose(ours, by_definition(logits, targets, smoothing), rel_tol=1e-4, abs_tol=1e-4)


def test_without_smoothing_it_is_cross_entropy():
    logits, targets = torch.randn(4, 5, 9), torch.randint(1, 9, (4, 5))
    expected = F.cross_entropy(logits.flatten(0, 1), targets.flatten(), reduction="sum")
    assert_close(LabelSmoothing(PAD, smoothing=0.0)(logits, targets), expected)


def test_padding_costs_nothing_and_gets_no_gradient():
    logits = torch.randn(1, 4, 6, requires_grad=True)
    targets = torch.tensor([[3, 2, PAD, PAD]])
    loss = LabelSmoothing(PAD, smoothing=0.1)(logits, targets)
    loss.backward()
    assert_close(loss, LabelSmoothing(PAD, smoothing=0.1)(logits[:, :2], targets[:, :2]))
    assert (logits.grad[:, 2:] == 0).all()
    assert (logits.grad[:, :2] != 0).all()


@pytest.mark.parametrize("smoothing", [-0.1, 1.0])
def test_an_impossible_smoothing_is_refused(smoothing):
    with pytest.raises(ValueError, match=r"loss.smoothing must lie in \[0, 1\)"):
        LabelSmoothing(PAD, smoothing=smoothing)
