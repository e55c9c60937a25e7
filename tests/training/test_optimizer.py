"""Adam against the paper's algorithm in plain numpy, with the paper's constants and its learning rates."""

import numpy as np
import pytest
import torch
from hydra.utils import instantiate
from torch.testing import assert_close

from etude.config.compose import compose
from etude.config.identity import resolve
from etude.errors import UserError
from etude.training.module import TranslationModule
from etude.training.optimizer import adam
from etude.training.schedule import as_scheduler


def numpy_adam(weights, gradient_of, rates, *, beta1=0.9, beta2=0.98, eps=1e-9):
    """Algorithm 1 of Kingma and Ba (2015), with a learning rate for every update; the weights after each."""
    first, second = np.zeros_like(weights), np.zeros_like(weights)
    trajectory = []
    for step, rate in enumerate(rates, start=1):
        gradient = gradient_of(weights)
        first = beta1 * first + (1 - beta1) * gradient
        second = beta2 * second + (1 - beta2) * gradient**2
        corrected = first / (1 - beta1**step), second / (1 - beta2**step)
        weights = weights - rate * corrected[0] / (np.sqrt(corrected[1]) + eps)
        trajectory.append(weights)
    return trajectory


def test_adam_follows_kingma_and_ba_with_the_papers_constants():
    weight = torch.tensor([1.0, -2.0], dtype=torch.float64, requires_grad=True)
    optimizer = adam([weight], beta1=0.9, beta2=0.98, eps=1e-9)
    optimizer.param_groups[0]["lr"] = 0.01
    gradients = [np.array([0.3 * step, -1.0 / step]) for step in range(1, 6)]
    following = iter(gradients)
    expected = numpy_adam(np.array([1.0, -2.0]), lambda weights: next(following), rates=[0.01] * 5)
    for gradient, after in zip(gradients, expected, strict=True):
        weight.grad = torch.from_numpy(gradient)
        optimizer.step()
        assert_close(weight.detach(), torch.from_numpy(after))


def test_a_tiny_gradient_meets_the_papers_epsilon():
    """Where the gradient is as small as epsilon, a step is half as long as the rate."""
    weight = torch.zeros(1, dtype=torch.float64, requires_grad=True)
    optimizer = adam([weight], beta1=0.9, beta2=0.98, eps=1e-9)
    weight.grad = torch.full((1,), 1e-9, dtype=torch.float64)
    optimizer.step()
    assert weight.item() == pytest.approx(-0.5)


def test_an_optimizer_with_a_rate_of_its_own_is_refused():
    module = TranslationModule(
        torch.nn.Linear(2, 2),
        loss=lambda logits, targets: logits.sum(),
        nll=lambda logits, targets: logits.sum(),
        optimizer=lambda parameters: torch.optim.AdamW(parameters, fused=True),
        scheduler=as_scheduler(lambda update: 1.0),
        seed=1,
    )
    with pytest.raises(UserError, match=r"AdamW is made with lr=0\.001, which would multiply .*: say optimizer\.lr=1"):
        module.configure_optimizers()


def test_training_follows_the_papers_adam_at_the_papers_rates_through_warmup_and_after():
    """The optimizer and schedule that `conf/` gives the base model, stepped as Lightning steps them."""
    warmup, updates = 8, 24
    config = resolve(compose(["scale=full", f"budget.warmup_steps={warmup}"]))
    model = torch.nn.Linear(3, 2, bias=False, dtype=torch.float64)
    curvature = torch.linspace(0.5, 3.0, 6, dtype=torch.float64).reshape(2, 3)
    start = model.weight.detach().numpy().copy()
    module = TranslationModule(
        model,
        loss=lambda logits, targets: logits.sum(),
        nll=lambda logits, targets: logits.sum(),
        optimizer=instantiate(config["optimizer"]),
        scheduler=as_scheduler(instantiate(config["schedule"])),
        seed=1,
    )
    made = module.configure_optimizers()
    optimizer, scheduler = made["optimizer"], made["lr_scheduler"]["scheduler"]
    rates = [512**-0.5 * min(step**-0.5, step * warmup**-1.5) for step in range(1, updates + 1)]
    expected = numpy_adam(start, lambda weights: curvature.numpy() * np.sin(weights), rates)
    for after in expected:
        optimizer.zero_grad()
        (curvature * (1 - torch.cos(model.weight))).sum().backward()
        optimizer.step()
        scheduler.step()
        assert_close(model.weight.detach(), torch.from_numpy(after))
