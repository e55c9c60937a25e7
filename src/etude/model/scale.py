"""How attention scores are scaled before the softmax (section 3.2.1)."""

from torch import Tensor, nn


class SqrtDk(nn.Module):
    """Scores divided by sqrt(d_k), equation (1): their variance is one where that of queries and keys is."""

    def __init__(self, *, d_k: int) -> None:
        super().__init__()
        self.factor = d_k**-0.5

    def forward(self, queries: Tensor, keys: Tensor) -> tuple[Tensor, Tensor]:
        """Queries (B, H, T, K) and keys (B, H, S, K) whose product is the scaled score."""
        # Scaling the queries is cheaper than scaling the scores, and the same.
        return queries * self.factor, keys


class Unscaled(nn.Module):
    """Plain dot products, what section 3.2.1 warns of: large d_k pushes the softmax where its gradient vanishes."""

    def forward(self, queries: Tensor, keys: Tensor) -> tuple[Tensor, Tensor]:
        """Queries (B, H, T, K) and keys (B, H, S, K) as they are."""
        return queries, keys
