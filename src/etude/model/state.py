"""What every decoder's state keeps of the source while rows come and go."""

import torch
from torch import Tensor


class SourceRows:
    """The encoder's output of each row, which is only moved where rows change their sentence.

    Attributes:
        memory: (R, S, D).
        mask: (R, S), True at real tokens.
    """

    def __init__(self, memory: Tensor, mask: Tensor) -> None:
        self.memory, self.mask = memory, mask
        self._sentence = torch.arange(memory.size(0), device=memory.device)  # of each row

    def reorder(self, rows: Tensor) -> bool:
        """Keep `rows` (R',) in that order, in place.

        Returns:
            Whether any row has another source now; beams of one sentence that change places keep theirs.
        """
        sentence = self._sentence[rows]
        moved = not torch.equal(sentence, self._sentence)
        self._sentence = sentence
        if moved:
            self.memory, self.mask = self.memory.index_select(0, rows), self.mask.index_select(0, rows)
        return moved
