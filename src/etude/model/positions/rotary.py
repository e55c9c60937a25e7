"""A scheme that turns queries and keys, so that their product knows how far apart they stand."""

import torch
from torch import Tensor

from etude.model.positions.base import Position
from etude.model.positions.table import GrowingTable


class Rotary(Position):
    """Rotary position embedding (Su et al. 2021, equations 14-16 and 34).

    The pair of components (2i, 2i+1) of a query or key at position pos is turned by the angle pos / base^(2i/K). A
    product of two such vectors depends on their offset alone. Encoder and decoder self-attention: all queries and keys,
    and a cache holds keys already turned. Attention to the encoder: untouched. Any length; no parameters.

    Raises:
        ValueError: d_k is odd, so that a component would have no partner to turn with.
    """

    def __init__(self, causal: bool, *, d_k: int, base: float) -> None:
        super().__init__(causal)
        if d_k % 2:
            raise ValueError(f"rotary positions turn queries and keys in pairs: d_k must be even, not {d_k}")
        self.d_k, self.base = d_k, base
        self.table = GrowingTable(self._rows)

    def rotate(self, x: Tensor, start: int) -> Tensor:
        """Queries or keys (B, H, T, K), turned to the positions start, start + 1, ..."""
        cosine, sine = self.table(start, x.size(2)).unbind(1)
        even, odd = x.unflatten(-1, (-1, 2)).unbind(-1)
        turned = torch.stack([even * cosine - odd * sine, even * sine + odd * cosine], dim=-1)
        return turned.flatten(-2).to(x.dtype)  # angles are float32 where x may be less

    def _rows(self, length: int) -> Tensor:
        """(length, 2, K/2), cosines and sines. In float64 first, as late angles have no digits to spare."""
        timescale = self.base ** (torch.arange(0, self.d_k, 2, dtype=torch.float64) / self.d_k)
        angle = torch.arange(length, dtype=torch.float64)[:, None] / timescale
        return torch.stack([angle.cos(), angle.sin()], dim=1).float()
