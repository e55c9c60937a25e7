"""What autograd saves, against a count by hand; the cost of whole models is tested in test_size.py."""

import torch
from torch import nn

from etude.tasks.counted import count_saved_bytes


def test_saved_bytes_are_what_a_backward_pass_needs() -> None:
    layer = nn.Sequential(nn.Linear(4, 6), nn.Tanh(), nn.Linear(6, 2))
    x = torch.randn(3, 4, requires_grad=True)
    output, saved = count_saved_bytes(layer, [x], x)
    assert saved == 4 * 3 * 6  # the output of tanh, kept once for two
    output.sum().backward()
    assert x.grad is not None
