"""What a run does for mixtures of experts: the cost of balancing, the load, and a warning."""

import logging
from functools import partial

import pytest
import torch
from torch.testing import assert_close

from etude.model.experts import AuxiliaryLoss, LossFree, MixtureOfExperts, mixtures
from etude.model.feedforward import ReluFeedForward
from etude.training.experts import balancing_cost, finish_step, report_load


def model(balance) -> torch.nn.Sequential:
    torch.manual_seed(1)
    sizes = {"d_model": 4, "experts": 3, "chosen": 1, "shared": 0, "capacity": 1.0}
    expert = partial(ReluFeedForward, d_model=4, d_ff=4)
    return torch.nn.Sequential(*(MixtureOfExperts(expert=expert, balance=balance, **sizes) for _ in range(2))).train()


def test_the_costs_of_all_mixtures_are_added_up_and_a_model_without_any_has_none():
    both = model(partial(AuxiliaryLoss, coefficient=0.1))
    both(torch.randn(2, 5, 4))
    expected = sum(part.unpaid.item() for part in both)
    assert_close(balancing_cost(mixtures(both)).item(), expected)
    assert balancing_cost(mixtures(both)) == balancing_cost({}) == 0.0


def test_an_update_counts_its_micro_batches_together_and_then_begins_anew():
    both = model(partial(LossFree, rate=0.1))
    for _ in range(2):
        both(torch.randn(2, 5, 4))
    load = both[0].load.clone()
    assert load.sum() == 20
    finish_step(mixtures(both))
    assert_close(both[0].balance.bias, 0.1 * (load.mean() - load).sign())
    assert both[0].load.sum() == 0


def test_an_expert_that_no_position_reaches_is_named_with_the_load(caplog: pytest.LogCaptureFixture):
    both = model(partial(LossFree, rate=0.1))
    both[0].after_step(torch.tensor([6.0, 0.0, 2.0]))
    both[1].after_step(torch.tensor([6.0, 1.0, 1.0]))
    with caplog.at_level(logging.INFO):
        report_load(mixtures(both))
    warning, info = caplog.records
    assert (
        "0: no position reached the experts 1 since the last validation (load: 0.750, 0.000, 0.250)" in warning.message
    )
    assert (warning.levelname, info.levelname) == ("WARNING", "INFO")
    caplog.clear()
    report_load(mixtures(both))
    assert not caplog.records
