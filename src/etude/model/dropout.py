"""Dropout (Srivastava et al. 2014; the paper's section 5.4)."""

import math
from collections.abc import Sequence

import torch
from torch import Tensor, nn
from torch.nn import functional as F

_LEVELS = 1 << 16  # values of a 16-bit random number


class Dropout(nn.Module):
    """Zero each element with probability `p` in training and divide the rest by 1 - p.

    On a CPU, one random number per element takes a third of a training step of a small Transformer. Four elements
    therefore share a random number of 64 bits, 16 bits each. This rounds `p` to a multiple of 1/65536, at most
    65535/65536; the divisor is computed from the rounded value, so that the expectation is exact. On other devices this
    is `torch.nn.functional.dropout`.

    Raises:
        ValueError: `p` is not in [0, 1).
    """

    def __init__(self, p: float) -> None:
        super().__init__()
        if not 0 <= p < 1:
            raise ValueError(f"a dropout probability must lie in [0, 1), not {p}")
        self.p = p
        self._kept = max(1, round((1 - p) * _LEVELS))

    def forward(self, x: Tensor) -> Tensor:
        """Apply dropout to a tensor of any shape; in evaluation, return it unchanged."""
        if not self.training or self._kept == _LEVELS:
            return x
        if x.device.type != "cpu":
            return F.dropout(x, self.p)
        kept, factor = self.draw(x.shape, x.device)
        return x if kept is None else (x * kept).mul_(factor)

    def draw(self, shape: Sequence[int], device: torch.device) -> tuple[Tensor | None, float]:
        """Draw a dropout mask of this shape, True where an element is kept (None: all are), and the factor of these."""
        if not self.training or self._kept == _LEVELS:
            return None, 1.0
        if device.type != "cpu":
            return torch.rand(shape, device=device) >= self.p, 1 / (1 - self.p)
        draw = torch.ops.etude.draw if torch.compiler.is_compiling() else _draw
        return draw(shape, self._kept), _LEVELS / self._kept

    def extra_repr(self) -> str:
        """Return what `print(model)` shows of this module."""
        return f"p={self.p}"


def _draw(shape: Sequence[int], kept: int) -> Tensor:
    """Draw a mask on the CPU, whose elements are True with probability kept / 65536."""
    count = math.prod(shape)
    draws = torch.empty((count + 3) // 4, dtype=torch.int64).random_(-(2**63), None)
    return draws.view(torch.int16)[:count].view(shape) < kept - _LEVELS // 2


# An opaque operation, so that compiled code draws the same numbers as eager code. The tag forbids the compiler to draw
# again in the backward pass.
torch.library.define("etude::draw", "(SymInt[] shape, int kept) -> Tensor", tags=torch.Tag.nondeterministic_seeded)
torch.library.impl("etude::draw", "default", _draw)
torch.library.register_fake("etude::draw", lambda shape, kept: torch.empty(shape, dtype=torch.bool))
