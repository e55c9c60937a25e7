"""Normalisation of vectors of size D."""

from torch import nn


class LayerNorm(nn.LayerNorm):
    """Layer normalisation (Ba et al. 2016), as in section 3.1: `gain * (x - mean) / sqrt(variance + eps) + bias`."""

    def __init__(self, *, d_model: int, eps: float) -> None:
        super().__init__(d_model, eps=eps)


class RmsNorm(nn.RMSNorm):
    """Root-mean-square normalisation (Zhang and Sennrich 2019): `gain * x / sqrt(mean(x^2) + eps)`."""

    def __init__(self, *, d_model: int, eps: float) -> None:
        super().__init__(d_model, eps=eps)


class NoNorm(nn.Identity):
    """No normalisation, for residual connections that use none (`model/residual=rezero`)."""
