"""Where weights of attention can be watched from outside."""

from torch import nn


class Watched(nn.Identity):
    """Weights (B, H, T, S), each row summing to one, pass through here on their way, so that an analysis sees them.

    Args:
        is_cross: whether they lead from the decoder to the encoder.
        heads: H.
    """

    def __init__(self, is_cross: bool, heads: int) -> None:
        super().__init__()
        self.is_cross, self.heads = is_cross, heads
