"""What autograd saves, against a count by hand; the cost of whole models is tested in test_size.py."""

import torch
from torch import Tensor, nn

from etude.tasks.counted import CountedSize, count_saved_bytes


def test_saved_bytes_are_what_a_backward_pass_needs() -> None:
    layer = nn.Sequential(nn.Linear(4, 6), nn.Tanh(), nn.Linear(6, 2))
    x = torch.randn(3, 4, requires_grad=True)
    output, saved = count_saved_bytes(layer, [x], x)
    assert saved == 4 * 3 * 6  # the output of tanh, kept once for two
    output.sum().backward()
    assert x.grad is not None


class Stepping(nn.Module):
    """A model that counts how often it begins to decode."""

    def __init__(self) -> None:
        super().__init__()
        self.out, self.begun = nn.Linear(4, 7, bias=False, device="meta"), 0

    def start(self, source: Tensor, source_mask: Tensor) -> None:
        self.begun += 1

    def step(self, token: Tensor, state: None) -> Tensor:
        return self.out(torch.zeros(len(token), 4, device="meta"))


def test_one_decoding_is_counted_for_every_beam_and_every_seed() -> None:
    model = Stepping()
    size = CountedSize(model, lambda: model)
    assert [size.decoding_flops(5, 3, beam) for beam in (1, 4, 4)] == [(1 + 2 * beam) * 2 * 4 * 7 for beam in (1, 4, 4)]
    assert model.begun == 1
