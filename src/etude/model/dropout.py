"""Dropout (Srivastava et al. 2014; the paper's section 5.4)."""

import math
from collections.abc import Sequence

import torch
from torch import Tensor, nn
from torch.nn import functional as F

_LEVELS = 1 << 16  # values of a 16-bit random number


class Dropout(nn.Module):
    """Zero each element with probability `p` while training and divide the rest by 1 - p.

    On CPU, drawing one random number an element takes a third of a training step of a small Transformer. There four
    elements share a 64-bit draw: each gets 16 bits of its own, so `p` is rounded to a multiple of 1/65536, at most
    65535/65536, and the divisor with it, which keeps the expectation exact. On other devices this is
    `torch.nn.functional.dropout`.

    Raises:
        ValueError: p is not in [0, 1).
    """

    def __init__(self, p: float) -> None:
        super().__init__()
        if not 0 <= p < 1:
            raise ValueError(f"a dropout probability must lie in [0, 1), not {p}")
        self.p = p
        self._kept = max(1, round((1 - p) * _LEVELS))

    def forward(self, x: Tensor) -> Tensor:
        """Any shape, unchanged in evaluation."""
        if not self.training or self._kept == _LEVELS:
            return x
        if x.device.type != "cpu":
            return F.dropout(x, self.p)
        kept, factor = self.draw(x.shape, x.device)
        return x if kept is None else (x * kept).mul_(factor)

    def draw(self, shape: Sequence[int], device: torch.device) -> tuple[Tensor | None, float]:
        """What is kept of a tensor of this shape, None: all, and what that is multiplied with."""
        if not self.training or self._kept == _LEVELS:
            return None, 1.0
        if device.type != "cpu":
            return torch.rand(shape, device=device) >= self.p, 1 / (1 - self.p)
        draw = _compiled_draw if torch.compiler.is_compiling() else _draw
        return draw(shape, self._kept), _LEVELS / self._kept

    def extra_repr(self) -> str:
        """For printing a model."""
        return f"p={self.p}"


def _draw(shape: Sequence[int], kept: int) -> Tensor:
    """True for `kept` of 65536 elements, on the processor."""
    count = math.prod(shape)
    draws = torch.empty((count + 3) // 4, dtype=torch.int64).random_(-(2**63), None)
    return draws.view(torch.int16)[:count].view(shape) < kept - _LEVELS // 2


_compiled_draw = torch.library.custom_op(  # called as it stands: the same draws, which a backward pass must not repeat
    "etude::draw", _draw, mutates_args=(), tags=torch.Tag.nondeterministic_seeded
)
_compiled_draw.register_fake(lambda shape, kept: torch.empty(shape, dtype=torch.bool))
