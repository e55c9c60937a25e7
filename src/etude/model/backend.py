"""How attention is computed, once queries, keys, values and what is added to the scores are there. Not what it is."""

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
        """What each query reads.

        Args:
            queries: (B, H, T, K), scaled.
            keys: (B, H, S, K), scaled.
            values: (B, H, S, V).
            mask: broadcastable to (B, H, T, S); True where looking is allowed.
            bias: broadcastable to (B, H, T, S), added to the scores; None: nothing.

        Returns:
            (B, H, T, V).
        """
        return self.dropout(weights(queries, keys, mask, bias)) @ values


class Sdpa(nn.Module):
    """The same function in one call, `scaled_dot_product_attention`, which need not keep the weights."""

    def __init__(self, *, dropout: float) -> None:
        super().__init__()
        self.p = dropout

    def forward(self, queries: Tensor, keys: Tensor, values: Tensor, mask: Tensor, bias: Tensor | None) -> Tensor:
        """As in `Eager`."""
        p = self.p if self.training else 0.0
        if bias is None and isinstance(mask, CausalMask):  # the one that flash kernels have without reading it
            return F.scaled_dot_product_attention(queries, keys, values, is_causal=True, dropout_p=p, scale=1.0)
        # A row that may look nowhere reads the mean of all, as in Eager. It is asked for by a query of zeros and no
        # mask: the backward pass of the fused kernels cannot tell weights apart in a row that is barred everywhere.
        nowhere = ~mask.any(dim=-1, keepdim=True)
        queries = queries.masked_fill(nowhere, 0.0)
        allowed = mask | nowhere
        if bias is not None:
            lowest = torch.finfo(queries.dtype).min
            allowed = bias.to(queries.dtype).masked_fill(nowhere, 0.0).masked_fill(~allowed, lowest)
        return F.scaled_dot_product_attention(queries, keys, values, attn_mask=allowed, dropout_p=p, scale=1.0)


def weights(queries: Tensor, keys: Tensor, mask: Tensor, bias: Tensor | None) -> Tensor:
    """How much each query reads of each key: (B, H, T, S), each row summing to one. Arguments as in `Eager`."""
    scores = queries @ keys.transpose(-2, -1)
    if bias is not None:
        scores = scores + bias
    # The lowest finite number, not -inf: a row that may look nowhere stays finite instead of turning into NaN.
    return scores.masked_fill(~mask, torch.finfo(scores.dtype).min).softmax(dim=-1)
