"""Attention of my own: conf/model/attention/gated.yaml names the class below."""

import torch
from torch import Tensor, nn

from etude.model.attention import MultiHeadAttention
from etude.model.cache import NO_CACHE, NoCache
from etude.model.position import Position


class Gated(MultiHeadAttention):
    """Multi-head attention behind a gate that the looking position opens: `sigmoid(W x + gate_bias) * attention`.

    Args:
        scale, backend, is_cross: what the code gives to every attention.
        d_model, heads, d_k, d_v, bias: the sizes, from the config.
        gate_bias: how far the gate is open at the start; 0 is half, 2 is almost.
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
        gate_bias: float,
    ) -> None:
        super().__init__(scale, backend, is_cross, d_model=d_model, heads=heads, d_k=d_k, d_v=d_v, bias=bias)
        self.gate = nn.Linear(d_model, d_model, bias=False)
        self.gate_bias = gate_bias

    def forward(
        self, x: Tensor, context: Tensor, mask: Tensor, position: Position, cache: NoCache = NO_CACHE
    ) -> Tensor:
        """As multi-head attention, (B, T, D), times the gate."""
        return torch.sigmoid(self.gate(x) + self.gate_bias) * super().forward(x, context, mask, position, cache)
