"""Adam against the paper's constants, written out."""

import torch
from torch.testing import assert_close

from etude.training.optimizer import adam


def test_adam_follows_kingma_and_ba_with_the_papers_constants():
    weight = torch.tensor([1.0, -2.0], dtype=torch.float64, requires_grad=True)
    optimizer = adam([weight], beta1=0.9, beta2=0.98, eps=1e-9)
    optimizer.param_groups[0]["lr"] = 0.01
    expected, first, second = weight.detach().clone(), torch.zeros(2).double(), torch.zeros(2).double()
    for step in range(1, 6):
        gradient = torch.tensor([0.3 * step, -1.0 / step], dtype=torch.float64)
        weight.grad = gradient.clone()
        optimizer.step()
        first = 0.9 * first + 0.1 * gradient
        second = 0.98 * second + 0.02 * gradient**2
        expected -= 0.01 * (first / (1 - 0.9**step)) / ((second / (1 - 0.98**step)).sqrt() + 1e-9)
    assert_close(weight.detach(), expected)
