"""The learning rate against equation (3) and torch's schedulers, and the step it starts from."""

import math
from itertools import pairwise

import pytest
import torch
from hydra.utils import instantiate
from hypothesis import given
from hypothesis import strategies as st
from torch.optim.lr_scheduler import CosineAnnealingLR, LinearLR

from etude.config.compose import compose
from etude.config.resolve import resolve
from etude.errors import UserError
from etude.paths import shipped
from etude.training.schedule import Noam, as_scheduler, check_schedule


def noam(d_model, warmup, max_steps, cooldown=0.0):
    return Noam(d_model=d_model, warmup_steps=warmup, factor=1.0, max_steps=max_steps, cooldown=cooldown)


@given(step=st.integers(1, 10**6), d_model=st.integers(1, 2048), warmup=st.integers(1, 10**5))
def test_the_rate_is_equation_three(step, d_model, warmup):
    rate = noam(d_model, warmup, max_steps=10**6)(step)
    assert math.isclose(rate, min(1 / math.sqrt(step), step / warmup**1.5) / math.sqrt(d_model))


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
    schedule = instantiate(resolve(compose(["scale=full"]))["schedule"])
    assert math.isclose(schedule(step), rate)


@pytest.mark.parametrize(
    ("name", "typed", "told"),
    [
        ("noam", "budget.warmup_steps=0", "warmup_steps must be at least 1"),
        *(("wsd", f"schedule.cooldown={share}", r"cooldown must lie in \[0, 1\]") for share in (-0.1, 1.1)),
        *((name, "schedule.final=2", r"schedule.final must lie in \[0, 1\]") for name in ("cosine", "linear")),
    ],
)
def test_a_warmup_of_nothing_and_what_is_no_share_are_refused(name, typed, told):
    with pytest.raises(Exception, match=told):
        configured(name, typed)


def test_a_rate_need_not_be_known_beyond_the_last_update():
    def root(step: int) -> float:
        return math.sqrt(1 - step / 4)

    optimizer = torch.optim.SGD([torch.zeros(1, requires_grad=True)], lr=1.0)
    scheduler, rates = as_scheduler(root, 4)(optimizer), []
    for _ in range(4):
        rates.append(optimizer.param_groups[0]["lr"])
        optimizer.step()
        scheduler.step()
    assert rates == [root(step) for step in range(1, 5)]
    scheduler = as_scheduler(root, 9)(optimizer)
    for _ in range(3):
        scheduler.step()
    with pytest.raises(ValueError, match="math domain error"):
        scheduler.step()


@given(
    max_steps=st.integers(2, 10_000),
    warmup=st.integers(1, 1000),
    cooldown=st.floats(0.01, 1.0),
    share=st.floats(0.0, 1.0),
)
def test_over_its_last_share_the_rate_falls_in_a_straight_line_to_zero(max_steps, warmup, cooldown, share):
    """As a share of equation (3)'s: one before the cooldown, an equal part less at every step, one part at the end."""
    step = 1 + round(share * (max_steps - 1))
    found = noam(64, warmup, max_steps, cooldown)(step) / noam(64, warmup, max_steps)(step)
    assert math.isclose(found, min(1.0, (max_steps + 1 - step) / (cooldown * max_steps)))
    assert noam(64, warmup, max_steps, cooldown)(max_steps + 1) == 0


WARMUP, STEPS = 10, 50
CONFIGURED = sorted(file.stem for file in (shipped("conf") / "schedule").glob("*.yaml"))


def configured(name: str, *overrides: str):
    """`schedule=<name>`, with a rate of at most one."""
    budget = [f"budget.warmup_steps={WARMUP}", f"budget.max_steps={STEPS}", "budget.cooldown=0"]
    rate = (64 * WARMUP) ** 0.5
    config = resolve(compose([f"schedule={name}", "model.d_model=64", f"budget.lr_factor={rate}", *budget, *overrides]))
    return instantiate(config["schedule"])


@pytest.mark.parametrize("name", CONFIGURED)
def test_every_schedule_rises_in_a_straight_line_to_the_peak_of_equation_three_and_no_further(name):
    """So that a comparison of two is one of their shapes."""
    rate = configured(name)
    assert [rate(step) for step in range(1, WARMUP + 1)] == pytest.approx([k / WARMUP for k in range(1, WARMUP + 1)])
    after = [rate(step) for step in range(WARMUP, STEPS + 1)]
    assert after == sorted(after, reverse=True)
    assert min(after) >= 0


def test_the_inverse_square_root_is_equation_three():
    noams, ours = configured("noam"), configured("inverse_sqrt")
    assert [ours(step) for step in range(1, STEPS)] == pytest.approx([noams(step) for step in range(1, STEPS)])


def test_a_constant_rate_and_a_stable_one_stay_until_the_cooldown():
    constant, stable = configured("constant"), configured("wsd", "schedule.cooldown=0.2")
    assert {constant(step) for step in range(WARMUP, STEPS + 1)} == {constant(WARMUP)}
    assert [stable(step) / constant(step) for step in range(36, 51)] == pytest.approx(
        [1] * 5 + [left / 10 for left in range(10, 0, -1)]
    )


@pytest.mark.parametrize("final", [0.0, 0.1])
@pytest.mark.parametrize(
    ("name", "torchs"),
    [
        ("cosine", lambda optimizer, final: CosineAnnealingLR(optimizer, STEPS - WARMUP, eta_min=final)),
        ("linear", lambda optimizer, final: LinearLR(optimizer, 1.0, max(final, 1e-12), STEPS - WARMUP)),
    ],
)
def test_what_follows_the_warmup_is_as_torchs_scheduler_has_it(name, torchs, final):
    ours = configured(name, f"schedule.final={final}")
    optimizer = torch.optim.SGD([torch.zeros(1)], lr=1.0)
    scheduler = torchs(optimizer, final)
    for step in range(WARMUP, STEPS + 1):
        assert ours(step) == pytest.approx(optimizer.param_groups[0]["lr"], abs=1e-9)
        optimizer.step()
        scheduler.step()


class Mute:
    """A schedule of one's own, without a rate."""


class Forgetful:
    """A schedule of one's own that returns nothing at its third step."""

    def __call__(self, step: int) -> float | None:
        return None if step == 3 else 0.1


class Divided:
    """A schedule of one's own that fails at its first step."""

    def __call__(self, step: int) -> float:
        return 0.1 / (step - 1)


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("Divided", r"schedule: .*Divided fails when it is called with step 1: ZeroDivisionError"),
        ("Mute", r"schedule: .*Mute must be called with a step"),
        ("Forgetful", r"schedule: the learning rate of step 3 is None, not a number"),
    ],
)
def test_a_schedule_that_gives_no_rate_is_refused_before_training(name, told):
    with pytest.raises(UserError, match=told):
        check_schedule({"schedule": {"_target_": f"{__name__}.{name}"}, "budget": {"max_steps": 5}})


def test_a_cooldown_that_begins_in_the_warmup_makes_no_jump():
    stable = configured("wsd", f"budget.warmup_steps={STEPS - 5}", "schedule.cooldown=0.4")
    rates = [stable(step) for step in range(STEPS + 1)]
    assert max(abs(one - other) for one, other in pairwise(rates)) < 0.1 * stable.peak
