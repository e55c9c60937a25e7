"""Mixtures of experts against a loop over positions, and their balance against the formulas."""

import math
from functools import partial

import pytest
import torch
from torch.testing import assert_close

from etude.model.experts import AuxiliaryLoss, Balance, Jitter, LossFree, MixtureOfExperts
from etude.model.feedforward import PlainFeedForward

from .conftest import drawn, jitter

D, N = 6, 12
expert = partial(PlainFeedForward, d_model=D, d_ff=5, activation="gelu")


def mixture(chosen: int, *, shared: int = 0, capacity: float | None = 1.25, balance=Balance) -> MixtureOfExperts:
    torch.manual_seed(3)
    sizes = {"d_model": D, "experts": 4, "chosen": chosen, "shared": shared, "capacity": capacity}
    return jitter(MixtureOfExperts(expert=expert, balance=balance, **sizes).double()).eval()


def by_hand(module: MixtureOfExperts, rows: torch.Tensor, places: int) -> torch.Tensor:
    """Each row by itself; an expert keeps the `places` rows with its highest scores of those that chose it."""
    scores = (rows @ module.router.weight.T).softmax(dim=-1)
    choices = [sorted(range(4), key=lambda e, n=n: -scores[n, e])[: module.chosen] for n in range(len(rows))]
    out = []
    for n, row in enumerate(rows):
        total = sum((network(row) for network in module.shared), torch.zeros(D))
        for e in choices[n]:
            rivals = [m for m in range(len(rows)) if e in choices[m] and scores[m, e] > scores[n, e]]
            if len(rivals) < places:
                total = total + scores[n, e] * module.experts[e](row)
        out.append(total)
    return torch.stack(out)


@pytest.mark.parametrize("chosen", [1, 2, 4])
@pytest.mark.parametrize("shared", [0, 1])
def test_a_position_gets_its_best_experts_by_their_scores(chosen, shared):
    module, x = mixture(chosen, shared=shared), drawn(N, D)
    assert_close(module(x.view(3, 4, D)), by_hand(module, x, places=N).view(3, 4, D))


@pytest.mark.parametrize("capacity", [0.25, 0.7, 1.25, None])
@pytest.mark.parametrize("chosen", [1, 2])
def test_in_training_an_expert_takes_the_highest_scores_as_far_as_its_capacity_goes(chosen, capacity):
    module, x = mixture(chosen, capacity=capacity).train(), drawn(N, D)
    places = N if capacity is None else math.ceil(capacity * chosen * N / 4)
    assert_close(module(x[None])[0], by_hand(module, x, places))
    assert module.load.sum() == chosen * N


def test_the_auxiliary_loss_is_its_formula_and_an_even_load_costs_the_coefficient():
    scores = drawn(8, 4).softmax(dim=-1)
    choice = torch.zeros(8, 4).double().scatter(1, scores.topk(2).indices, 1.0)
    shares, means = choice.sum(0) / 16, scores.mean(0)
    cost = AuxiliaryLoss(4, coefficient=0.1).cost(scores, choice)
    assert_close(cost, 0.1 * 4 * (shares * means).sum())
    even = torch.full((4, 4), 0.25)
    assert_close(AuxiliaryLoss(4, coefficient=0.1).cost(even, torch.eye(4)), torch.tensor(0.1))


def test_a_cost_is_taken_once_and_teaches_the_router():
    module = mixture(1, balance=partial(AuxiliaryLoss, coefficient=0.1)).train()
    module(drawn(1, N, D))
    cost = module.take_cost()
    assert torch.autograd.grad(cost, module.router.weight)[0].ne(0).any()
    assert module.take_cost() is None


def test_a_bias_falls_for_busy_experts_and_decides_who_is_chosen_but_not_the_weight():
    module, x = mixture(1, balance=partial(LossFree, rate=0.5)), drawn(N, D)
    module.after_step(torch.tensor([5.0, 1.0, 3.0, 3.0]))
    assert module.balance.bias.tolist() == [-0.5, 0.5, 0.0, 0.0]
    module.balance.bias.copy_(torch.tensor([0.0, 9.0, 0.0, 0.0]))
    score = (x @ module.router.weight.T).softmax(dim=-1)[:, 1:2]
    assert_close(module(x[None])[0], score * module.experts[1](x))


@pytest.mark.parametrize("chosen", [0, 5])
def test_more_experts_than_there_are_cannot_be_chosen(chosen):
    with pytest.raises(ValueError, match=rf"chosen={chosen} of experts=4: say model\.feedforward\.chosen="):
        mixture(chosen)


def test_a_capacity_of_nothing_is_refused():
    with pytest.raises(ValueError, match=r"model\.feedforward\.capacity must be above 0, not 0"):
        mixture(1, capacity=0)


def test_jitter_is_noise_of_its_width_that_is_in_training_alone():
    balance, rows = Jitter(4, coefficient=0.1, jitter=0.25), 1 + drawn(400, D).abs()
    noise = balance.disturb(rows) / rows
    assert 0.75 <= noise.min() < 0.76 < 1.24 < noise.max() <= 1.25
    assert torch.equal(balance.eval().disturb(rows), rows)


def test_a_layer_that_is_used_several_times_pays_for_each_use():
    module = mixture(1, balance=partial(AuxiliaryLoss, coefficient=0.1)).train()
    apart = []
    for rows in (first := drawn(1, N, D), second := drawn(1, N, D) + 1):
        module(rows)
        apart.append(module.take_cost())
    module(first), module(second)
    assert_close(module.take_cost(), sum(apart))
    assert apart[0] != apart[1]
    module(first)
    module.after_step(module.load)
    assert module.take_cost() is None, "an update ends what could be paid"


def test_a_capacity_that_is_whole_is_not_rounded_up():
    """1.1 * 100 / 2 is 55.00000000000001 in binary."""
    torch.manual_seed(0)
    sizes = {"d_model": D, "experts": 2, "chosen": 1, "shared": 0}
    module = MixtureOfExperts(expert=expert, balance=Balance, capacity=1.1, **sizes).double().train()
    rows = drawn(1, D).expand(100, D)
    assert module(rows[None])[0].any(dim=-1).sum() == 55
