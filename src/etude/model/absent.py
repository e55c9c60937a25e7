"""The encoder and the decoder that are not there: a language model has no encoder, a tagger of tokens no decoder."""

from torch import Tensor, nn

from etude.model.parts import Parts


class NoEncoder(nn.Module):
    """No encoder: the decoder is all there is, and sees the target alone (Radford et al. 2018)."""

    is_read = False

    def __init__(self, parts: Parts) -> None:
        super().__init__()

    def forward(self, x: Tensor, mask: Tensor) -> Tensor:
        """(B, S, D) as it is; nobody looks at it."""
        return x
