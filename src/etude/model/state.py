"""What every decoder's state keeps of the source while rows come and go."""

import torch
from torch import Tensor


class SourceRows:
    """The encoder's output of each sentence, once, however many rows of the state translate it.

    What looks at the source takes the rows of a sentence for queries of it: `fold` makes them such, `unfold` gives each
    row its own again. Nothing of the source is copied where rows change places, and all of them read it together.

    Attributes:
        memory: (A, S, D), of A sentences.
        mask: (A, S), True at real tokens.
    """

    def __init__(self, memory: Tensor, mask: Tensor) -> None:
        self.memory, self.mask = memory, mask
        self._sentence = torch.arange(memory.size(0), device=memory.device)  # (R,), of each row
        self._width = 1  # W, rows that a sentence has room for
        self._place: Tensor | None = None  # (R,), of each row among A x W; None: they fill them in that order

    def reorder(self, rows: Tensor) -> Tensor | None:
        """Keep `rows` (R',) in that order, in place; a row may be repeated or left out.

        Returns:
            Which sentences are left (A',); None: all of them.
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
        """(R, T, D) to (A, W T, D); zeros where a sentence has fewer rows than another."""
        length = x.size(1)
        if self._place is not None:
            x = x.new_zeros(len(self.memory) * self._width, *x.shape[1:]).index_copy_(0, self._place, x)
        return x.reshape(len(self.memory), self._width * length, x.size(-1))

    def unfold(self, x: Tensor) -> Tensor:
        """(A, W T, D) back to (R, T, D)."""
        x = x.reshape(len(self.memory) * self._width, x.size(1) // self._width, x.size(-1))
        return x if self._place is None else x.index_select(0, self._place)
