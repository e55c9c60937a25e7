"""Differential attention: the difference of two attentions, in which noise cancels (Ye et al. 2024)."""

import math

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from etude.model.attention import MultiHeadAttention
from etude.model.cache import KeysValues
from etude.model.numbered import Numbered, Place
from etude.model.position import Position


class DifferentialAttention(MultiHeadAttention, Numbered):
    """Differential attention (Ye et al. 2024): `(softmax(Q_1 K_1^T) - lambda softmax(Q_2 K_2^T)) V`, then a norm.

    The H heads of queries and keys make H / 2 pairs, each with values of 2 V components, so that it has the matrices of
    `MultiHeadAttention`. Each pair's output is divided by its root mean square, with a learned gain, and multiplied by
    1 - lambda_init (their equations 1 to 3). The lambda of a layer is learned:
    `exp(lambda_q1 . lambda_k1) - exp(lambda_q2 . lambda_k2) + lambda_init`, with vectors of K components and
    `lambda_init = 0.8 - 0.6 exp(-0.3 (l - 1))` of layer l = 1, 2, ...; a layer that is used again is
    the first.

    Args:
        scale, backend, is_cross, d_model, heads, d_k, d_v, bias: see `MultiHeadAttention`.
        eps: of the norm.

    Raises:
        ValueError: `heads` is odd.
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
        eps: float,
    ) -> None:
        if heads % 2:
            raise ValueError(f"differential attention has pairs of heads: say model.heads={heads + 1}, not {heads}")
        super().__init__(scale, backend, is_cross, d_model=d_model, heads=heads, d_k=d_k, d_v=d_v, bias=bias)
        self.lambdas = nn.Parameter(torch.empty(2, 2, d_k))  # of the first and the second map: of queries, of keys
        self.gain, self.eps = nn.Parameter(torch.ones(2 * d_v)), eps
        self.initial = _initial_lambda(0)
        self.reset_parameters()

    def set_place(self, place: Place) -> None:
        """Set lambda_init."""
        self.initial = _initial_lambda(place.layer)

    def reset_parameters(self) -> None:
        """Initialise the vectors of lambda from N(0, 0.1^2), and the gain with ones."""
        nn.init.normal_(self.lambdas, std=0.1)
        nn.init.ones_(self.gain)

    def _project_keys_values(self, context: Tensor, position: Position, start: int) -> KeysValues:
        keys, values = super()._project_keys_values(context, position, start)
        return keys, torch.cat([values[:, 0::2], values[:, 1::2]], dim=-1)  # of a pair, side by side

    def _repeat_kv(self, x: Tensor) -> Tensor:
        return x.repeat_interleave(self.heads // x.size(1), dim=1)

    def _join_heads(self, out: Tensor) -> Tensor:
        """Subtract the second map of each pair (B, H, T, 2 V) from the first, and normalise; returns (B, T, H V)."""
        first, second = self.lambdas.prod(dim=1).sum(dim=-1).exp()
        maps = out.unflatten(1, (-1, 2))
        difference = maps[:, :, 0] - (first - second + self.initial).to(out.dtype) * maps[:, :, 1]
        normed = F.rms_norm(difference, self.gain.shape, self.gain.to(out.dtype), self.eps) * (1 - self.initial)
        return super()._join_heads(normed)


def _initial_lambda(layer: int) -> float:
    return 0.8 - 0.6 * math.exp(-0.3 * layer)
