"""The base class of position schemes, the scheme without positions, and a table that grows with sequence length."""

from collections.abc import Callable

import torch
from torch import Tensor, nn

_INITIAL_LENGTH = 128  # positions; few sentences are longer


class Position(nn.Module):
    """Base class whose methods do nothing. `start` counts earlier positions; `causal` is True in decoders."""

    def __init__(self, causal: bool) -> None:
        super().__init__()
        self.causal = causal

    def add_to_embedding(self, x: Tensor, start: int) -> Tensor:
        """Add position vectors to embeddings (B, T, D) of the positions start, start + 1, ..."""
        return x

    def rotate(self, x: Tensor, start: int) -> Tensor:
        """Rotate queries or keys (B, H, T, K) of the positions start, start + 1, ..."""
        return x

    def score_bias(self, queries: Tensor, length: int, start: int) -> Tensor | None:
        """Compute what is added to the scores, broadcastable to (B, H, T, S); None: nothing.

        Args:
            queries: (B, H, T, K), scaled, of the positions start, start + 1, ...
            length: S; keys are at the positions 0, 1, ..., S - 1.
            start: the first query's position.
        """
        return None

    def for_layers(self, n_layers: int) -> "Position":
        """Return the scheme for a stack of `n_layers`, with weights for each layer if it has any."""
        return self

    def at_layer(self, n: int) -> "Position":
        """Return the scheme of layer n = 0, 1, ... of the stack."""
        return self

    def score_flops(self, queries: int, keys: int, d_k: int) -> int:
        """Count the floating-point operations of `score_bias` for one layer and head, each query with all keys."""
        return 0


NO_POSITION = Position(causal=False)


class NoPosition(Position):
    """No positions: the encoder sees a bag of words, the decoder learns order only from its mask."""


class GrowingTable(nn.Module):
    """A table with a row for each position 0, 1, ..., extended when a longer sequence needs it.

    Args:
        rows: computes the rows (n, ...) of the first n positions.
    """

    filled: Tensor

    def __init__(self, rows: Callable[[int], Tensor]) -> None:
        super().__init__()
        self.rows = rows
        self.register_buffer("filled", rows(_INITIAL_LENGTH), persistent=False)

    def forward(self, start: int, length: int) -> Tensor:
        """Return the rows (length, ...) of the positions start, start + 1, ..."""
        end = start + length
        if end > self.filled.size(0):
            # A tensor created in inference mode could not be used in training later.
            with torch.inference_mode(False):
                self.filled = self.rows(2 * end).to(self.filled)
        return self.filled[start:end]
