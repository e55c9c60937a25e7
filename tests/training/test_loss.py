"""Every loss in `conf/` held to what a loss must be, and each against its formula."""

import math
from collections.abc import Callable

import numpy as np
import pytest
import torch
from hypothesis import example, given, settings
from hypothesis import strategies as st
from torch import Tensor
from torch.testing import assert_close

from etude.config import parts
from etude.config.compose import compose
from etude.config.resolve import resolve
from etude.errors import UserError
from etude.paths import shipped
from etude.training.loss import LabelSmoothing, LabelSmoothingT2T, ZLoss

PAD, VOCABULARY = 0, 7
LOSSES = sorted(file.stem for file in (shipped("conf") / "loss").glob("*.yaml"))

Loss = Callable[[Tensor, Tensor], Tensor]
smoothings = st.floats(0, 0.8)
seeds = st.integers(0, 50)


@pytest.fixture(params=LOSSES)
def loss(request) -> Loss:
    """Each loss in `conf/`, as it stands there."""
    return parts.make(resolve(compose([f"loss={request.param}"]))["loss"], PAD)


def drawn(seed: int) -> tuple[Tensor, Tensor]:
    """Logits (2, 3, 7) in double precision, and targets (2, 3), some of them padding."""
    generator = torch.Generator().manual_seed(seed)
    logits = 2 * torch.randn(2, 3, VOCABULARY, generator=generator, dtype=torch.float64)
    targets = torch.randint(1, VOCABULARY, (2, 3), generator=generator)
    targets[1, 2] = PAD
    return logits, targets


def aimed_at(loss: Loss, target: int) -> Tensor:
    """The distribution q (V,) that a token's loss pulls the model to: its gradient is softmax(logits) - q.

    Of logits that are normalised already, so that a loss that asks for that does not pull.
    """
    logits = torch.full((1, 1, VOCABULARY), -math.log(VOCABULARY), dtype=torch.float64, requires_grad=True)
    loss(logits, torch.tensor([[target]])).backward()
    return (1 / VOCABULARY - logits.grad).flatten()


# Claims about every loss


def test_padding_costs_nothing_and_gets_no_gradient(loss):
    logits = torch.randn(1, 4, VOCABULARY, requires_grad=True)
    targets = torch.tensor([[3, 2, PAD, PAD]])
    whole = loss(logits, targets)
    whole.backward()
    assert_close(whole, loss(logits[:, :2], targets[:, :2]))
    assert (logits.grad[:, 2:] == 0).all()
    assert (logits.grad[:, :2] != 0).all()


def test_a_batch_costs_the_sum_of_its_tokens(loss):
    logits, targets = drawn(1)
    each = [loss(logits[b, t][None, None], targets[b, t][None, None]) for b in range(2) for t in range(3)]
    assert_close(loss(logits, targets), torch.stack(each).sum())


def test_the_gradient_is_that_of_finite_differences(loss):
    logits, targets = drawn(2)
    assert torch.autograd.gradcheck(lambda values: loss(values, targets), logits.requires_grad_())


def test_the_least_loss_is_at_the_distribution_that_the_gradient_aims_at(loss):
    aim = aimed_at(loss, 3)
    assert_close(aim.sum(), torch.ones((), dtype=torch.float64))
    assert (aim > 0).all()
    best, targets = aim.log()[None, None].requires_grad_(), torch.tensor([[3]])
    least = loss(best, targets)
    least.backward()
    assert_close(best.grad, torch.zeros_like(best))
    for seed in range(20):
        moved = best.detach() + torch.randn(VOCABULARY, generator=torch.Generator().manual_seed(seed)).double()
        assert loss(moved, targets) > least


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_half_precision_is_summed_in_single(loss, dtype):
    logits, targets = drawn(3)
    halved = logits.to(dtype)
    assert loss(halved, targets).dtype == torch.float32
    assert_close(loss(halved, targets), loss(halved.float(), targets))


@pytest.mark.parametrize("smoothing", [-0.1, 1.0])
@pytest.mark.parametrize("name", LOSSES)
def test_an_impossible_smoothing_is_refused(name, smoothing):
    node = resolve(compose([f"loss={name}", f"loss.smoothing={smoothing}"]))["loss"]
    with pytest.raises(UserError, match=r"loss.smoothing must lie in \[0, 1\)"):
        parts.make(node, PAD)


# Each against its formula


def by_definition(logits: Tensor, targets: Tensor, on_target: float, elsewhere: float) -> float:
    """-sum over real tokens of sum over pieces q(piece) log p(piece)."""
    total = 0.0
    for row, target in zip(logits.flatten(0, 1).numpy(), targets.flatten().tolist(), strict=True):
        if target != PAD:
            q = np.full(VOCABULARY, elsewhere)
            q[target] = on_target
            total -= float(np.sum(q * (row - np.log(np.sum(np.exp(row))))))
    return total


@settings(max_examples=30, deadline=None)
@given(smoothing=smoothings, seed=seeds)
@example(smoothing=0.0, seed=5)
def test_label_smoothing_spreads_eps_over_the_whole_vocabulary(smoothing, seed):
    logits, targets = drawn(seed)
    share = smoothing / VOCABULARY
    expected = by_definition(logits, targets, 1 - smoothing + share, share)
    assert math.isclose(LabelSmoothing(PAD, smoothing=smoothing)(logits, targets).item(), expected)


@settings(max_examples=30, deadline=None)
@given(smoothing=smoothings, seed=seeds)
@example(smoothing=0.0, seed=5)
def test_the_published_code_spreads_eps_over_the_other_pieces_and_subtracts_the_entropy(smoothing, seed):
    logits, targets = drawn(seed)
    confidence, low = 1 - smoothing, smoothing / (VOCABULARY - 1)
    normalising = -(confidence * np.log(confidence) + (VOCABULARY - 1) * low * np.log(low + 1e-20))
    expected = by_definition(logits, targets, confidence, low) - 5 * normalising
    ours = LabelSmoothingT2T(PAD, smoothing=smoothing)(logits, targets).item()
    assert math.isclose(ours, expected, rel_tol=1e-9, abs_tol=1e-9)


def test_a_smoothing_that_outweighs_the_truth_in_a_small_vocabulary_is_refused():
    with pytest.raises(UserError, match=r"loss.smoothing=0.9 .* vocabulary of 7: lower it to 0.857 or less"):
        LabelSmoothingT2T(PAD, smoothing=0.9)(*drawn(6))


@settings(max_examples=20, deadline=None)
@given(seed=seeds, smoothing=smoothings, coefficient=st.floats(0, 2))
def test_the_z_loss_adds_the_square_of_log_z_for_each_real_token(seed, smoothing, coefficient):
    logits, targets = drawn(seed)
    squares = [
        math.log(float(logits[b, t].exp().sum())) ** 2 for b in range(2) for t in range(3) if targets[b, t] != PAD
    ]
    plain = LabelSmoothing(PAD, smoothing=smoothing)(logits, targets)
    found = ZLoss(PAD, smoothing=smoothing, coefficient=coefficient)(logits, targets)
    assert_close(found, plain + coefficient * sum(squares))


def test_a_negative_coefficient_is_refused():
    with pytest.raises(ValueError, match=r"loss\.coefficient must be 0 or more, not -1"):
        ZLoss(PAD, smoothing=0.0, coefficient=-1)
