"""Optimizers. The schedule gives the learning rate itself, so theirs is one."""

from collections.abc import Iterable

from torch import Tensor, optim


def adam(parameters: Iterable[Tensor], *, beta1: float, beta2: float, eps: float) -> optim.Optimizer:
    """Adam (Kingma and Ba 2015) as in section 5.3, one fused kernel for all parameters."""
    return optim.Adam(parameters, lr=1.0, betas=(beta1, beta2), eps=eps, fused=True)
