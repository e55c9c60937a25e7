"""What every position scheme answers, the scheme that is none, and the table that some of them look up."""

from collections.abc import Callable

import torch
from torch import Tensor, nn

_FIRST = 128  # positions; few sentences are longer


class Position(nn.Module):
    """The do-nothing answers. `start` is the number of positions already decoded; `causal` is True in the decoder."""

    def __init__(self, causal: bool) -> None:
        super().__init__()
        self.causal = causal

    def add_to_embedding(self, x: Tensor, start: int) -> Tensor:
        """Embeddings (B, T, D) of the positions start, start + 1, ..."""
        return x

    def rotate(self, x: Tensor, start: int) -> Tensor:
        """Queries or keys (B, H, T, K) of the positions start, start + 1, ..."""
        return x

    def score_bias(self, queries: Tensor, length: int, start: int) -> Tensor | None:
        """What is added to the scores: broadcastable to (B, H, T, S), or None for nothing.

        Args:
            queries: (B, H, T, K), scaled, of the positions start, start + 1, ...
            length: S, the positions 0, 1, ... that are looked at.
            start: the first query's position.
        """
        return None

    def for_layers(self, n_layers: int) -> "Position":
        """The scheme of a stack of so many layers; one that has weights for each layer makes them here."""
        return self

    def at_layer(self, n: int) -> "Position":
        """The scheme as layer n = 0, 1, ... of the stack sees it."""
        return self

    def score_flops(self, queries: int, keys: int, d_k: int) -> int:
        """Floating-point operations of the products in `score_bias`: one layer, one head, each query on all keys."""
        return 0


NO_POSITION = Position(causal=False)


class NoPosition(Position):
    """No information on order: the encoder sees a bag of words, the decoder knows order only through its mask."""


class GrowingTable(nn.Module):
    """Numbers that depend on the position alone: a row for each of 0, 1, ..., more when a longer sequence comes.

    Args:
        rows: the rows of the first n positions (n, ...).
    """

    filled: Tensor

    def __init__(self, rows: Callable[[int], Tensor]) -> None:
        super().__init__()
        self.rows = rows
        self.register_buffer("filled", rows(_FIRST), persistent=False)

    def forward(self, start: int, length: int) -> Tensor:
        """(length, ...): the rows of the positions start, start + 1, ..."""
        end = start + length
        if end > self.filled.size(0):
            # What is made in inference mode could never take part in training again.
            with torch.inference_mode(False):
                self.filled = self.rows(2 * end).to(self.filled)
        return self.filled[start:end]
