"""Product-key memory: a large table of values, of which each position reads a few (Lample et al. 2019)."""

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from etude.model.precision import without_autocast


class ProductKeyMemory(nn.Module):
    """A feed-forward network that reads from n^2 values, found by the products of two short keys.

    Each head makes a query of two halves, and compares each with n keys of its own. The score of a value is the sum of
    the scores of its two keys: of the k best keys on either side come the k best values, whose softmax weighs them. The
    sum over all heads is returned. Queries are normalised by themselves; Lample et al. normalise over the batch, so
    that a sentence would depend on others.

    Args:
        d_model: D.
        heads: H.
        keys: n, of each half.
        key_size: the components of both halves.
        neighbours: k, the values that a head reads.
        eps: of the norm.

    Raises:
        ValueError: the key size is odd, or k is not among 1, ..., n.
    """

    def __init__(self, *, d_model: int, heads: int, keys: int, key_size: int, neighbours: int, eps: float) -> None:
        super().__init__()
        if key_size % 2:
            raise ValueError(f"a key has two halves: key_size must be even, not {key_size}")
        if not 1 <= neighbours <= keys:
            raise ValueError(
                f"neighbours={neighbours} of keys={keys}: a head reads at least one value, at most as many"
            )
        self.heads, self.neighbours = heads, neighbours
        self.query_proj = nn.Linear(d_model, heads * key_size)
        self.norm = nn.LayerNorm(key_size // 2, eps=eps)
        self.keys = nn.Parameter(torch.empty(heads, 2, keys, key_size // 2))
        self.values = nn.Parameter(torch.empty(keys * keys, d_model))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw keys so that scores are of order one, and values as small as embeddings are."""
        nn.init.normal_(self.keys, std=self.keys.size(-1) ** -0.5)
        nn.init.normal_(self.values, std=self.values.size(-1) ** -0.5)

    def forward(self, x: Tensor) -> Tensor:
        """Map (B, T, D) to (B, T, D), each position by itself."""
        rows = x.flatten(0, -2)
        with without_autocast(x.device):  # a choice by half the digits would often be another
            exact = rows.to(self.values.dtype)
            halves = self.norm(self.query_proj(exact).unflatten(-1, (self.heads, 2, -1)))
            scores, near = torch.einsum("bhpc,hpnc->bhpn", halves, self.keys).topk(self.neighbours)
            sums = scores[:, :, 0, :, None] + scores[:, :, 1, None, :]
            best, pairs = sums.flatten(-2).topk(self.neighbours)
            first = near[:, :, 0].gather(-1, pairs // self.neighbours)
            second = near[:, :, 1].gather(-1, pairs % self.neighbours)
            chosen, weights = first * self.keys.size(2) + second, best.softmax(dim=-1)
            read = F.embedding_bag(chosen.flatten(1), self.values, mode="sum", per_sample_weights=weights.flatten(1))
        return read.to(x.dtype).view_as(x)
