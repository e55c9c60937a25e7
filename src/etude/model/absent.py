"""The encoder of models that have none, such as language models."""

from torch import Tensor, nn

from etude.model.parts import Parts


class NoEncoder(nn.Module):
    """No encoder: the decoder reads the target only (Radford et al. 2018)."""

    is_read = False

    def __init__(self, parts: Parts) -> None:
        super().__init__()

    def forward(self, x: Tensor, mask: Tensor) -> Tensor:
        """Return `x` (B, S, D) unchanged; no decoder reads it."""
        return x
