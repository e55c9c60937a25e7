"""Normalisation of vectors of size D."""

import torch
from torch import Tensor, nn


class LayerNorm(nn.LayerNorm):
    """Layer normalisation (Ba et al. 2016), as in section 3.1: `gain * (x - mean) / sqrt(variance + eps) + bias`."""

    def __init__(self, *, d_model: int, eps: float) -> None:
        super().__init__(d_model, eps=eps)


class RmsNorm(nn.RMSNorm):
    """Root-mean-square normalisation (Zhang and Sennrich 2019): `gain * x / sqrt(mean(x^2) + eps)`."""

    def __init__(self, *, d_model: int, eps: float) -> None:
        super().__init__(d_model, eps=eps)


class PartialRmsNorm(nn.Module):
    """Root-mean-square normalisation by the mean over the first numbers alone (Zhang and Sennrich 2019).

    Args:
        d_model: D.
        share: of the D numbers, how many enter the mean, rounded, at least one.
        eps: is added to the mean.

    Raises:
        ValueError: `share` is not above zero and at most one.
    """

    def __init__(self, *, d_model: int, share: float, eps: float) -> None:
        super().__init__()
        if not 0 < share <= 1:
            raise ValueError(f"model.norm.share must be above 0 and at most 1, not {share}")
        self.first, self.eps = max(1, round(share * d_model)), eps
        self.weight = nn.Parameter(torch.ones(d_model))

    def forward(self, x: Tensor) -> Tensor:
        """Normalise a tensor (..., D); the mean is computed in float32 at least, as in PyTorch's norms."""
        exact = x[..., : self.first].to(torch.promote_types(x.dtype, torch.float32))
        factor = (exact.square().mean(dim=-1, keepdim=True) + self.eps).rsqrt()
        return self.weight * (x * factor.to(x.dtype))


class DynamicTanh(nn.Module):
    """`gain * tanh(alpha x) + bias` in place of a norm, with a learned alpha (Zhu et al. 2025).

    Raises:
        ValueError: `alpha`, with which it begins, is not above zero.
    """

    def __init__(self, *, d_model: int, alpha: float) -> None:
        super().__init__()
        if alpha <= 0:
            raise ValueError(f"model.norm.alpha must be above 0, not {alpha}")
        self.alpha = nn.Parameter(torch.tensor(float(alpha)))
        self.weight, self.bias = nn.Parameter(torch.ones(d_model)), nn.Parameter(torch.zeros(d_model))

    def forward(self, x: Tensor) -> Tensor:
        """Map a tensor (..., D) element by element."""
        return self.weight * torch.tanh(self.alpha * x) + self.bias


class NoNorm(nn.Identity):
    """No normalisation, for residual connections that use none (`model/residual=rezero`)."""
