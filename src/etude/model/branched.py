"""Branched attention: each head goes through a feed-forward network by itself (Ahmed et al. 2017)."""

import torch
from torch import Tensor, nn

from etude.model.attention import MultiHeadAttention, split_heads
from etude.model.parts import Factory


class BranchedAttention(MultiHeadAttention):
    """`sum_h alpha_h FFN(kappa_h head_h W_O^h)`, as in the Weighted Transformer (Ahmed et al. 2017).

    The heads share one network, which stands in for the feed-forward sub-layer. Each of kappa and alpha sums to one
    over the heads: a softmax of learned numbers, equal at first, where Ahmed et al. constrain the numbers themselves.

    Args:
        scale, backend, is_cross, d_model, heads, d_k, d_v, bias: see `MultiHeadAttention`.
        network: makes a feed-forward network.
    """

    def __init__(
        self,
        scale: nn.Module,
        backend: nn.Module,
        is_cross: bool,
        *,
        d_model: int,
        heads: int,
        d_k: int,
        d_v: int,
        bias: bool,
        network: Factory,
    ) -> None:
        super().__init__(scale, backend, is_cross, d_model=d_model, heads=heads, d_k=d_k, d_v=d_v, bias=bias)
        self.out_proj = _EachHead(heads * d_v, d_model, bias, heads)
        self.network: nn.Module = network()
        self.kappa, self.alpha = nn.Parameter(torch.zeros(heads)), nn.Parameter(torch.zeros(heads))

    def _combine(self, out: Tensor) -> Tensor:
        """Make what the heads found, (B, H, T, V), the output (B, T, D)."""
        kappa, alpha = (numbers.softmax(dim=0)[:, None, None] for numbers in (self.kappa, self.alpha))
        branches = self.network(self.out_proj(self._join_heads(kappa * out)))
        found: Tensor = (alpha * branches).sum(dim=1)
        return found


class _EachHead(nn.Linear):
    """W_O of which each head is multiplied by its own rows, without adding up the products."""

    def __init__(self, in_features: int, out_features: int, bias: bool, heads: int) -> None:
        super().__init__(in_features, out_features, bias=bias)
        self.heads = heads

    def forward(self, x: Tensor) -> Tensor:
        """Map the heads side by side, (B, T, H V), to (B, H, T, D)."""
        found = split_heads(x, self.heads) @ self.weight.T.unflatten(0, (self.heads, -1))
        return found if self.bias is None else found + self.bias
