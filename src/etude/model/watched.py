"""A module that attention weights pass through, for hooks."""

from torch import nn


class Watched(nn.Identity):
    """Identity on attention weights (B, H, T, S), each row summing to one, which an analysis reads with a hook.

    Args:
        is_cross: whether this is attention from the decoder to the encoder.
        heads: H.
    """

    def __init__(self, is_cross: bool, heads: int) -> None:
        super().__init__()
        self.is_cross, self.heads = is_cross, heads
