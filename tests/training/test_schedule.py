"""The learning rate against equation (3), and the step it starts from."""

import math

import pytest
import torch
from hydra.utils import instantiate
from hypothesis import given
from hypothesis import strategies as st

from etude.config.compose import compose
from etude.config.identity import resolved
from etude.training.module import TranslationModule
from etude.training.optimizer import adam
from etude.training.schedule import Noam


@given(step=st.integers(1, 10**6), d_model=st.integers(1, 2048), warmup=st.integers(1, 10**5))
def test_the_rate_is_equation_three(step, d_model, warmup):
    rate = Noam(d_model=d_model, warmup_steps=warmup, factor=1.0)(step)
    assert math.isclose(rate, min(1 / math.sqrt(step), step / warmup**1.5) / math.sqrt(d_model))


def test_the_base_model_peaks_where_the_paper_does():
    noam = Noam(d_model=512, warmup_steps=4000, factor=1.0)
    assert math.isclose(noam(4000), 6.987712429686843e-4)
    assert noam(3999) < noam(4000) > noam(4001)


@pytest.mark.parametrize(
    ("step", "rate"),
    [
        (1, 1.7469281074217107e-7),
        (100, 1.7469281074217107e-5),
        (4000, 6.987712429686843e-4),
        (16_000, 3.4938562148434214e-4),  # four times the steps, half the rate
        (100_000, 1.3975424859373686e-4),
    ],
)
def test_the_full_budget_of_conf_gives_the_base_model_the_papers_rates(step, rate):
    schedule = instantiate(resolved(compose(["scale=full"]))["schedule"])
    assert math.isclose(schedule(step), rate)


def test_the_first_update_is_step_one():
    schedule = Noam(d_model=16, warmup_steps=10, factor=1.0)
    module = TranslationModule(
        torch.nn.Linear(2, 2),
        loss=lambda logits, targets: logits.sum(),
        likelihood=lambda logits, targets: logits.sum(),
        optimizer=lambda parameters: adam(parameters, beta1=0.9, beta2=0.98, eps=1e-9),
        schedule=schedule,
        seed=1,
    )
    made = module.configure_optimizers()
    optimizer, scheduler = made["optimizer"], made["lr_scheduler"]["scheduler"]
    rates = []
    for _ in range(3):
        rates.append(optimizer.param_groups[0]["lr"])
        optimizer.step()
        scheduler.step()
    assert rates == [schedule(1), schedule(2), schedule(3)]
    assert made["lr_scheduler"]["interval"] == "step"


def test_a_warmup_of_nothing_is_refused():
    with pytest.raises(ValueError, match="warmup_steps must be at least 1"):
        Noam(d_model=16, warmup_steps=0, factor=1.0)
