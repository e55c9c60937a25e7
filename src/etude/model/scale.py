"""How attention scores are scaled before the softmax (section 3.2.1).

A scale is given queries (B, H, T, K) and keys (B, H, S, K) and gives them back so that their product is the scaled
score. What multiplies a score is put on the queries: cheaper than on the scores, and the same.
"""

import math

import torch
from torch import Tensor, nn
from torch.nn import functional as F


class _Fixed(nn.Module):
    """Scores times a number that the sizes give."""

    def __init__(self, factor: float) -> None:
        super().__init__()
        self.factor = factor

    def forward(self, queries: Tensor, keys: Tensor) -> tuple[Tensor, Tensor]:
        """Queries (B, H, T, K) and keys (B, H, S, K) whose product is the scaled score."""
        return queries * self.factor, keys


class SqrtDk(_Fixed):
    """Scores divided by sqrt(d_k), equation (1): their variance is one where that of queries and keys is."""

    def __init__(self, *, d_k: int) -> None:
        super().__init__(d_k**-0.5)


class Dk(_Fixed):
    """Scores divided by d_k (Yang et al. 2022): of order one once training has aligned queries with keys."""

    def __init__(self, *, d_k: int) -> None:
        super().__init__(1 / d_k)


class SqrtDmodel(_Fixed):
    """Scores divided by sqrt(d_model): a common mistake, sqrt(heads) too small where d_k is d_model / heads."""

    def __init__(self, *, d_model: int) -> None:
        super().__init__(d_model**-0.5)


class Unscaled(nn.Module):
    """Plain dot products, what section 3.2.1 warns of: large d_k pushes the softmax where its gradient vanishes."""

    def forward(self, queries: Tensor, keys: Tensor) -> tuple[Tensor, Tensor]:
        """Queries (B, H, T, K) and keys (B, H, S, K) as they are."""
        return queries, keys


class LearnedPerHead(nn.Module):
    """Scores times a factor that each head learns, 1/sqrt(d_k) at first (Lee et al. 2021 learn one for a layer).

    The logarithm is what is learned: a factor stays positive, and so never turns likes into dislikes.
    """

    def __init__(self, *, heads: int, d_k: int) -> None:
        super().__init__()
        self.log_factor = nn.Parameter(torch.full((heads,), -0.5 * math.log(d_k)))

    def forward(self, queries: Tensor, keys: Tensor) -> tuple[Tensor, Tensor]:
        """Queries (B, H, T, K) and keys (B, H, S, K) whose product is the scaled score."""
        return (queries * self.log_factor.exp()[:, None, None]).to(queries.dtype), keys


class Cosine(nn.Module):
    """Query-key normalisation (Henry et al. 2020): g times the cosine of query and key, g learned in each layer.

    The cosine lies in [-1, 1], whatever d_k. g starts at log2(L^2 - L), their choice, enough for a softmax over L
    positions to become sharp.

    Args:
        length: L, of a long sentence; theirs is the 97.5th percentile of the training data.

    Raises:
        ValueError: a length under 2, which has no such logarithm.
    """

    def __init__(self, *, length: int) -> None:
        super().__init__()
        if length < 2:
            raise ValueError(
                f"the cosine's first factor is log2(length^2 - length): length must be 2 or more, not {length}"
            )
        self.g = nn.Parameter(torch.tensor(math.log2(length**2 - length)))

    def forward(self, queries: Tensor, keys: Tensor) -> tuple[Tensor, Tensor]:
        """Queries (B, H, T, K) and keys (B, H, S, K) whose product is the scaled score."""
        return self.g * _direction(queries), _direction(keys)


def _direction(x: Tensor) -> Tensor:
    """Vectors of length one. The shortest stay shorter: a vector near zero has a direction by accident only."""
    return F.normalize(x, dim=-1, eps=1e-3).to(x.dtype)
