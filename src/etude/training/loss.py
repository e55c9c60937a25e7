"""The training loss: cross-entropy with label smoothing (section 5.4)."""

import math

import torch
from torch import Tensor
from torch.nn import functional as F

from etude.errors import UserError
from etude.training.cross_entropy import CrossEntropy


class LabelSmoothing:
    """Cross-entropy with weight 1 - eps on the true token and eps / V on every token (Szegedy et al. 2016).

    Args:
        pad: the padding token, which has no loss.
        smoothing: eps_ls, in [0, 1).

    Raises:
        ValueError: `smoothing` is outside [0, 1).
    """

    def __init__(self, pad: int, *, smoothing: float) -> None:
        if not 0 <= smoothing < 1:
            raise ValueError(f"loss.smoothing must lie in [0, 1), not {smoothing}")
        self.pad = pad
        self.smoothing = smoothing

    def __call__(self, logits: Tensor, targets: Tensor) -> Tensor:
        """Compute the loss, summed over real tokens, in nats.

        Args:
            logits: (B, T, V).
            targets: (B, T), `pad` where there is no token.
        """
        return self._cross_entropy(logits, targets, self.smoothing)

    def _cross_entropy(self, logits: Tensor, targets: Tensor, uniform: float) -> Tensor:
        """Compute the loss for 1 - `uniform` on the true token and `uniform` / V on all, in float32 or float64."""
        rows, wanted = logits.flatten(0, 1), targets.flatten()
        if logits.device.type == "cpu":
            nats: Tensor = CrossEntropy.apply(rows, wanted, uniform, self.pad)
            return nats
        exact = rows.to(torch.promote_types(rows.dtype, torch.float32))
        return F.cross_entropy(exact, wanted, ignore_index=self.pad, label_smoothing=uniform, reduction="sum")


class LabelSmoothingT2T(LabelSmoothing):
    """Label smoothing of the paper's published code: 1 - eps on the true token, eps / (V - 1) on every other token.

    The other tokens include padding. The entropy of these targets is subtracted, so that a perfect model has loss 0:
    the loss is the divergence KL(targets || model). The constant does not change the gradient.
    """

    def __call__(self, logits: Tensor, targets: Tensor) -> Tensor:
        """Compute the loss, summed over real tokens, in nats.

        Args:
            logits: (B, T, V).
            targets: (B, T), `pad` where there is no token.

        Raises:
            UserError: eps is more than (V - 1) / V: the true token would weigh less than any other.
        """
        vocab_size = logits.size(-1)
        others = vocab_size - 1
        uniform = self.smoothing * vocab_size / others  # the same targets, written as a mixture
        if uniform > 1:
            raise UserError(
                f"loss.smoothing={self.smoothing} leaves the true token less than any other of a vocabulary of "
                f"{vocab_size}: lower it to {others / vocab_size:.3f} or less"
            )
        cost = self._cross_entropy(logits, targets, uniform)
        return cost - (targets != self.pad).sum(dtype=cost.dtype) * self._entropy(others)

    def _entropy(self, others: int) -> float:
        """Compute the entropy of 1 - eps on one token and eps / others on each of the others, in nats."""
        eps = self.smoothing
        return -(1 - eps) * math.log1p(-eps) + (eps * (math.log(others) - math.log(eps)) if eps else 0.0)


class ZLoss(LabelSmoothing):
    """Label smoothing plus `coefficient * log^2 Z`, Z the sum of all exp(logits) (Chowdhery et al. 2022, section 5).

    It keeps the logits from drifting, as a softmax does not mind that all of them grow. It adds nothing where the model
    gives logarithms of probabilities, whose Z is 1: with adaptive softmax and mixtures of softmaxes.

    Args:
        pad: the padding token, which has no loss.
        smoothing: eps_ls, in [0, 1).
        coefficient: of the square, for each token.

    Raises:
        ValueError: `smoothing` is outside [0, 1), or the coefficient is negative.
    """

    def __init__(self, pad: int, *, smoothing: float, coefficient: float) -> None:
        super().__init__(pad, smoothing=smoothing)
        if coefficient < 0:
            raise ValueError(f"loss.coefficient must be 0 or more, not {coefficient}")
        self.coefficient = coefficient

    def __call__(self, logits: Tensor, targets: Tensor) -> Tensor:
        """Compute the loss, summed over real tokens, in nats.

        Args:
            logits: (B, T, V).
            targets: (B, T), `pad` where there is no token.
        """
        log_z = logits.to(torch.promote_types(logits.dtype, torch.float32)).logsumexp(dim=-1)
        return super().__call__(logits, targets) + self.coefficient * (log_z.square() * (targets != self.pad)).sum()
