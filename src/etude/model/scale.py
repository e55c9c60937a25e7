"""How attention scores are scaled before the softmax (section 3.2.1).

A scale takes queries (B, H, T, K) and keys (B, H, S, K), and returns them changed so that their product is the scaled
score. The queries are multiplied by the factor instead of the scores: the result is the same, and it is cheaper.
"""

import math
from typing import Any, cast

import torch
from torch import Tensor, nn
from torch.nn import functional as F


class _Fixed(nn.Module):
    """Multiplies scores by a constant factor."""

    def __init__(self, factor: float) -> None:
        super().__init__()
        self.factor = factor

    def forward(self, queries: Tensor, keys: Tensor) -> tuple[Tensor, Tensor]:
        """Scale queries (B, H, T, K) and keys (B, H, S, K), so that their product is the scaled score."""
        return queries * self.factor, keys


class SqrtDk(_Fixed):
    """Scores divided by sqrt(d_k), equation (1): their variance is one if that of queries and keys is one."""

    def __init__(self, *, d_k: int) -> None:
        super().__init__(d_k**-0.5)

    def resized(self, heads: int, d_k: int) -> nn.Module:
        """Return the same for other sizes."""
        return SqrtDk(d_k=d_k)


class Dk(_Fixed):
    """Scores divided by d_k (Yang et al. 2022): they are of order one after training has aligned queries with keys."""

    def __init__(self, *, d_k: int) -> None:
        super().__init__(1 / d_k)

    def resized(self, heads: int, d_k: int) -> nn.Module:
        """Return the same for other sizes."""
        return Dk(d_k=d_k)


class SqrtDmodel(_Fixed):
    """Scores divided by sqrt(d_model): a common mistake, too small by sqrt(heads) where d_k is d_model / heads."""

    def __init__(self, *, d_model: int) -> None:
        super().__init__(d_model**-0.5)


class Unscaled(nn.Module):
    """Plain dot products. Section 3.2.1 warns that with large d_k the gradient of the softmax vanishes."""

    def forward(self, queries: Tensor, keys: Tensor) -> tuple[Tensor, Tensor]:
        """Return queries (B, H, T, K) and keys (B, H, S, K) unchanged."""
        return queries, keys


class LearnedPerHead(nn.Module):
    """Scores times a learned factor per head, 1/sqrt(d_k) at first (Lee et al. 2021 learn one per layer).

    Its logarithm is the parameter, so that the factor stays positive and cannot reverse the order of the scores.
    """

    def __init__(self, *, heads: int, d_k: int) -> None:
        super().__init__()
        self.log_factor = nn.Parameter(torch.full((heads,), -0.5 * math.log(d_k)))

    def resized(self, heads: int, d_k: int) -> nn.Module:
        """Return the same for other sizes."""
        return LearnedPerHead(heads=heads, d_k=d_k)

    def forward(self, queries: Tensor, keys: Tensor) -> tuple[Tensor, Tensor]:
        """Scale queries (B, H, T, K) and keys (B, H, S, K), so that their product is the scaled score."""
        return (queries * self.log_factor.exp()[:, None, None]).to(queries.dtype), keys


class Cosine(nn.Module):
    """Query-key normalisation (Henry et al. 2020): g times the cosine of query and key, with a learned g per layer.

    The cosine is in [-1, 1] for any d_k. As in Henry et al., g starts at log2(L^2 - L), which is enough for a softmax
    over L positions to become sharp.

    Args:
        length: L, the length of a long sentence; Henry et al. take the 97.5th percentile of the training data.

    Raises:
        ValueError: `length` is less than 2, where that logarithm does not exist.
    """

    def __init__(self, *, length: int) -> None:
        super().__init__()
        if length < 2:
            raise ValueError(
                f"the cosine's first factor is log2(length^2 - length): length must be 2 or more, not {length}"
            )
        self.g = nn.Parameter(torch.tensor(math.log2(length**2 - length)))

    def forward(self, queries: Tensor, keys: Tensor) -> tuple[Tensor, Tensor]:
        """Scale queries (B, H, T, K) and keys (B, H, S, K), so that their product is the scaled score."""
        return self.g * _direction(queries), _direction(keys)


def resize(scale: nn.Module, heads: int, d_k: int) -> nn.Module:
    """Return the scale for an attention of other heads: another one where it follows from their number or size."""
    return cast(nn.Module, cast(Any, scale).resized(heads, d_k)) if hasattr(scale, "resized") else scale


def _direction(x: Tensor) -> Tensor:
    """Normalise vectors to length one; those below 1e-3 stay shorter, as the direction of such a vector is noise."""
    return F.normalize(x, dim=-1, eps=1e-3).to(x.dtype)


def soft_cap(x: Tensor, cap: float) -> Tensor:
    """Compute `cap * tanh(x / cap)` in float32 or float64, whatever the precision of `x`."""
    exact = x.to(torch.promote_types(x.dtype, torch.float32))
    return cap * torch.tanh(exact / cap)
