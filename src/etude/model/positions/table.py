"""Numbers that depend on the position alone."""

from collections.abc import Callable

import torch
from torch import Tensor, nn

_FIRST = 128  # positions; few sentences are longer


class GrowingTable(nn.Module):
    """One row for each of the positions 0, 1, ..., filled once, and anew where a longer sequence comes.

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
