"""The encoder's output in the state of every decoder, while rows are repeated and left out."""

import torch
from torch import Tensor


class SourceRows:
    """The encoder's output, stored once per sentence, however many rows (hypotheses) of the state translate it.

    Attention to the source treats all rows of a sentence as queries of one batch item: `fold` arranges rows so, and
    `unfold` returns to one row each. Reordering rows therefore does not copy the encoder's output, and all rows of a
    sentence attend to it in one product.

    Attributes:
        memory: (A, S, D), or what else the encoder's output is, of A sentences.
        mask: (A, S), True at real tokens.
    """

    def __init__(self, memory: Tensor, mask: Tensor) -> None:
        self.memory, self.mask = memory, mask
        self._sentence = torch.arange(memory.size(0), device=memory.device)  # (R,), the sentence of each row
        self._width = 1  # W, the most rows that a sentence has
        self._place: Tensor | None = None  # (R,), the slot of each row among A x W; None: row r is in slot r

    def reorder(self, rows: Tensor) -> Tensor | None:
        """Keep `rows` (R',) in that order, in place; a row may be repeated or left out.

        Returns:
            The indices (A',) of the sentences that still have rows; None: all have.
        """
        sentence = self._sentence[rows]
        if torch.equal(sentence, self._sentence):
            return None
        left, self._sentence, counts = torch.unique(sentence, return_inverse=True, return_counts=True)
        self._width = int(counts.max())
        order = self._sentence.argsort(stable=True)
        nth = torch.arange(len(order), device=order.device) - (counts.cumsum(0) - counts)[self._sentence[order]]
        place = torch.empty_like(order).index_copy_(0, order, nth) + self._width * self._sentence
        filled = torch.arange(len(left) * self._width, device=order.device)
        self._place = None if torch.equal(place, filled) else place
        if len(left) == len(self.memory):
            return None
        self.memory, self.mask = self.memory.index_select(0, left), self.mask.index_select(0, left)
        return left

    def fold(self, x: Tensor) -> Tensor:
        """Arrange rows (R, T, D) by sentence, (A, W T, D), with zeros where a sentence has fewer than W rows."""
        length = x.size(1)
        if self._place is not None:
            x = x.new_zeros(len(self.memory) * self._width, *x.shape[1:]).index_copy_(0, self._place, x)
        return x.reshape(len(self.memory), self._width * length, x.size(-1))

    def unfold(self, x: Tensor) -> Tensor:
        """Invert `fold`: (A, W T, D) to (R, T, D)."""
        x = x.reshape(len(self.memory) * self._width, x.size(1) // self._width, x.size(-1))
        return x if self._place is None else x.index_select(0, self._place)
