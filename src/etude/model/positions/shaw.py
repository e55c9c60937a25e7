"""Learned vectors for offsets, which each query meets as it meets the keys."""

from typing import cast

import torch
from torch import Tensor, nn

from etude.model.positions.base import Position
from etude.model.positions.relative import offsets


class Shaw(Position):
    """Relative position representations (Shaw et al. 2018): one learned vector a_K for each offset clipped to +-`clip`.

    The vector of an offset is added to the key inside the scaled product (their equation 4), and so adds its product
    with the scaled query to the score. Heads share the vectors, layers do not. The vectors a_V, which would be added to
    the values, are left out: their Table 3 finds keys alone as good. Encoder: offsets both ways. Decoder
    self-attention: offsets back. Attention to the encoder: untouched. Any length.

    Args:
        causal: True in the decoder.
        n_layers: of the stack, each with a table of its own.
        d_k: K.
        clip: k, the distance from which all offsets share a vector.

    Raises:
        ValueError: clip is less than one.
    """

    def __init__(self, causal: bool, *, n_layers: int, d_k: int, clip: int) -> None:
        super().__init__(causal)
        if clip < 1:
            raise ValueError(f"relative positions are told apart up to a distance of at least 1, not clip={clip}")
        self.layers = nn.ModuleList(_ShawLayer(causal, d_k, clip) for _ in range(n_layers))

    def at_layer(self, n: int) -> Position:
        """With the vectors of layer n."""
        return cast(Position, self.layers[n])

    def score_flops(self, queries: int, keys: int, d_k: int) -> int:
        """As any layer has it."""
        return self.at_layer(0).score_flops(queries, keys, d_k)


class _ShawLayer(Position):
    """The vectors of one layer."""

    def __init__(self, causal: bool, d_k: int, clip: int) -> None:
        super().__init__(causal)
        self.clip = clip
        self.table = nn.Parameter(torch.empty(2 * clip + 1, d_k))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw the vectors anew."""
        # Short vectors: scores of unit variance gain 1/d_k by them, so that words lead and order is seen at once.
        nn.init.normal_(self.table, std=self.table.size(1) ** -0.5)

    def score_bias(self, queries: Tensor, length: int, start: int) -> Tensor:
        """(B, H, T, S). Each query meets 2k + 1 vectors once and reads off the product for each key."""
        products = queries @ self.table.T
        row = offsets(queries, length, start).clamp(-self.clip, self.clip) + self.clip
        return products.gather(-1, row.expand(*products.shape[:2], -1, -1))

    def score_flops(self, queries: int, keys: int, d_k: int) -> int:
        """Two for each query, vector and component, however many keys there are."""
        return 2 * queries * self.table.size(0) * d_k
