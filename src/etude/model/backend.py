"""Attention backends: ways to compute the same attention from queries, keys, values, mask and bias."""

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from etude.model.dropout import Dropout
from etude.model.mask import CausalMask


class Eager(nn.Module):
    """Equation (1) step by step: scores, softmax, dropout on the weights, weighted sum."""

    def __init__(self, *, dropout: float) -> None:
        super().__init__()
        self.dropout = Dropout(dropout)

    def forward(self, queries: Tensor, keys: Tensor, values: Tensor, mask: Tensor, bias: Tensor | None) -> Tensor:
        """Compute attention (equation 1).

        Args:
            queries: (B, H, T, K), scaled.
            keys: (B, H, S, K), scaled.
            values: (B, H, S, V).
            mask: broadcastable to (B, H, T, S); True where attention is allowed. A query that may attend to nothing
                gets the mean of all values.
            bias: broadcastable to (B, H, T, S), added to the scores; None: no bias.

        Returns:
            (B, H, T, V).
        """
        return self.dropout(weights(queries, keys, mask, bias)) @ values


class Sdpa(nn.Module):
    """The same by PyTorch's `scaled_dot_product_attention`, whose fused kernels do not store the weights."""

    def __init__(self, *, dropout: float) -> None:
        super().__init__()
        self.p = dropout

    def forward(self, queries: Tensor, keys: Tensor, values: Tensor, mask: Tensor, bias: Tensor | None) -> Tensor:
        """Compute attention; arguments as in `Eager`."""
        p = self.p if self.training else 0.0
        if bias is None and isinstance(mask, CausalMask):  # flash kernels know this mask without reading it
            return F.scaled_dot_product_attention(queries, keys, values, is_causal=True, dropout_p=p, scale=1.0)
        # A query that may attend to nothing gets the mean of all values, as in Eager. Here the query is set to zero and
        # its mask lifted: the backward pass of the fused kernels cannot recover the weights of a fully masked row.
        nowhere = ~mask.any(dim=-1, keepdim=True)
        queries = queries.masked_fill(nowhere, 0.0)
        allowed = mask | nowhere
        if bias is not None:
            lowest = torch.finfo(queries.dtype).min
            allowed = bias.to(queries.dtype).masked_fill(nowhere, 0.0).masked_fill(~allowed, lowest)
        return F.scaled_dot_product_attention(queries, keys, values, attn_mask=allowed, dropout_p=p, scale=1.0)


def weights(queries: Tensor, keys: Tensor, mask: Tensor, bias: Tensor | None) -> Tensor:
    """Compute attention weights (B, H, T, S), each row summing to one; arguments as in `Eager`."""
    scores = queries @ keys.transpose(-2, -1)
    if bias is not None:
        scores = scores + bias
    # The lowest finite number, not -inf: a row that is masked everywhere gives finite weights instead of NaN.
    return scores.masked_fill(~mask, torch.finfo(scores.dtype).min).softmax(dim=-1)
