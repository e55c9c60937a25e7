"""The causal mask of a decoder, marked by its type so that kernels need not read it."""

import torch
from torch import Tensor


class CausalMask(Tensor):
    """A (T, T) mask that is True in row t up to column t, and False elsewhere.

    It behaves like any other mask, and results of operations on it, such as a mask cut to a window, are plain tensors.
    A backend that has a kernel for this case recognises it by its type, without reading its values.
    """

    __torch_function__ = torch._C._disabled_torch_function_impl  # type: ignore[assignment]


def causal_mask(length: int, start: int, device: torch.device) -> Tensor:
    """Make the mask (T, start + T) of T = `length` positions that follow `start` cached ones: True up to themselves."""
    mask = torch.ones(length, start + length, dtype=torch.bool, device=device).tril(start)
    return mask if start else mask.as_subclass(CausalMask)
