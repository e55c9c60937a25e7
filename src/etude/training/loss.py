"""What training minimises (section 5.4)."""

from torch import Tensor
from torch.nn import functional as F


class LabelSmoothing:
    """Cross-entropy against the true piece with weight 1 - eps and a uniform eps / V (Szegedy et al. 2016).

    Args:
        smoothing: eps_ls, in [0, 1).
        pad: the piece that stands for no token and costs nothing.
    """

    def __init__(self, pad: int, *, smoothing: float) -> None:
        if not 0 <= smoothing < 1:
            raise ValueError(f"loss.smoothing must lie in [0, 1), not {smoothing}")
        self.pad = pad
        self.smoothing = smoothing

    def __call__(self, logits: Tensor, targets: Tensor) -> Tensor:
        """The loss summed over real tokens, in nats.

        Args:
            logits: (B, T, V).
            targets: (B, T), `pad` where there is no token.
        """
        return F.cross_entropy(
            logits.flatten(0, 1).float(),
            targets.flatten(),
            ignore_index=self.pad,
            label_smoothing=self.smoothing,
            reduction="sum",
        )
