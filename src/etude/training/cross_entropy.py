"""Cross-entropy and its gradient for CPUs, computed together while a few rows of logits are in the cache.

PyTorch's own passes over the logits in memory nine times, which takes a sixth of a small Transformer's step.
"""

import math
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

_LOG2_E = 1 / math.log(2)
_BLOCK = 1 << 17  # logits at a time: half a megabyte


class CrossEntropy(torch.autograd.Function):
    """`torch.nn.functional.cross_entropy` with label smoothing and reduction "sum", in float32 or float64."""

    @staticmethod
    def forward(ctx: Any, logits: Tensor, targets: Tensor, smoothing: float, ignored: int) -> Tensor:
        """Compute the loss in nats, and its gradient.

        Args:
            ctx: saves the gradient.
            logits: (N, V).
            targets: (N,).
            smoothing: the share of the uniform distribution in the targets.
            ignored: the target whose rows have no loss.
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
            powers = (x - highest).mul_(_LOG2_E).exp2_()  # exp is slow for results near zero
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
        """Return the gradient with respect to the logits."""
        return ctx.saved_tensors[0] * above, None, None, None
