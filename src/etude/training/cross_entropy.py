"""Cross-entropy with its gradient, computed together while a few rows of logits are in the processor's cache.

PyTorch's own takes the logits through the memory nine times, and a small Transformer spends a sixth of a step there.
"""

import math
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

_LOG2_E = 1 / math.log(2)
_BLOCK = 1 << 17  # logits at a time: half a megabyte


class CrossEntropy(torch.autograd.Function):
    """As `torch.nn.functional.cross_entropy` with label smoothing, a sum, in single precision at least."""

    @staticmethod
    def forward(ctx: Any, logits: Tensor, targets: Tensor, smoothing: float, ignored: int) -> Tensor:
        """In nats.

        Args:
            ctx: keeps the gradient.
            logits: (N, V).
            targets: (N,).
            smoothing: the share of the uniform distribution in the targets.
            ignored: the target whose rows cost nothing.
        """
        exact = torch.promote_types(logits.dtype, torch.float32)
        gradient = torch.empty_like(logits) if ctx.needs_input_grad[0] else None
        nats = torch.zeros((), dtype=torch.float64, device=logits.device)
        vocab_size = logits.size(1)
        rows = max(1, _BLOCK // vocab_size)
        for first in range(0, len(logits), rows):
            x, target = logits[first : first + rows].to(exact), targets[first : first + rows, None]
            counts = (target != ignored).to(exact)
            highest = x.amax(dim=1, keepdim=True)
            powers = (x - highest).mul_(_LOG2_E).exp2_()  # exp is slow where it comes to next to nothing
            total = powers.sum(dim=1, keepdim=True)
            cost = highest + total.log() - (1 - smoothing) * x.gather(1, target)
            if smoothing:
                cost -= smoothing / vocab_size * x.sum(dim=1, keepdim=True)
            nats += cost.mul_(counts).sum()
            if gradient is not None:
                powers.mul_(counts / total)
                if smoothing:
                    powers.sub_(counts * (smoothing / vocab_size))
                gradient[first : first + rows] = powers.scatter_add_(1, target, counts * (smoothing - 1.0))
        ctx.save_for_backward(gradient)
        return nats.to(exact)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, above: Tensor) -> tuple[Tensor, None, None, None]:
        """Of the logits alone."""
        return ctx.saved_tensors[0] * above, None, None, None
