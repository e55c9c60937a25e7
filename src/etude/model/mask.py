"""Who may look where: the mask of a decoder, which kernels need not read to know it."""

import torch
from torch import Tensor


class CausalMask(Tensor):
    """A (T, T) mask whose row t is True up to column t, and nothing else.

    For all that reads it a mask like any other; what is made of it, cut to a window for example, is a plain one. A
    backend with a kernel of its own for this case knows it by its type, without a look at its numbers.
    """

    __torch_function__ = torch._C._disabled_torch_function_impl  # type: ignore[assignment]


def causal_mask(length: int, start: int, device: torch.device) -> Tensor:
    """(T, start + T), True where T positions after `start` earlier ones may look: at those, themselves, and before."""
    mask = torch.ones(length, start + length, dtype=torch.bool, device=device).tril(start)
    return mask if start else mask.as_subclass(CausalMask)
