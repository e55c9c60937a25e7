"""The position-wise feed-forward network (section 3.3)."""

from collections.abc import Callable
from typing import ClassVar

from torch import Tensor, nn
from torch.nn import functional as F


class FeedForward(nn.Module):
    """Base class: `activation(x W1 + b1) W2 + b2`, with `d_ff` inner units."""

    activation: ClassVar[Callable[..., Tensor]]  # elementwise

    def __init__(self, *, d_model: int, d_ff: int) -> None:
        super().__init__()
        self.inner = nn.Linear(d_model, d_ff)
        self.outer = nn.Linear(d_ff, d_model)

    def forward(self, x: Tensor) -> Tensor:
        """Map (B, T, D) to (B, T, D), each position by itself."""
        return self.outer(self.activation(self.inner(x)))


class ReluFeedForward(FeedForward):
    """`max(0, x W1 + b1) W2 + b2`, equation (2)."""

    activation = staticmethod(F.relu)


class GeluFeedForward(FeedForward):
    """`GELU(x W1 + b1) W2 + b2`, GELU(z) = z Phi(z), not its tanh approximation (Hendrycks and Gimpel 2016)."""

    activation = staticmethod(F.gelu)


class GatedFeedForward(nn.Module):
    """Base class: `(activation(x W) * x V) W2` without biases (Shazeer 2020).

    It has three matrices instead of two. The number of inner units is therefore two thirds of `d_ff`, rounded, which
    gives as many parameters and as much computation as the other networks have.
    """

    activation: ClassVar[Callable[..., Tensor]]  # elementwise

    def __init__(self, *, d_model: int, d_ff: int) -> None:
        super().__init__()
        units = round(2 * d_ff / 3)
        self.gate = nn.Linear(d_model, units, bias=False)
        self.inner = nn.Linear(d_model, units, bias=False)
        self.outer = nn.Linear(units, d_model, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        """Map (B, T, D) to (B, T, D), each position by itself."""
        return self.outer(self.activation(self.gate(x)) * self.inner(x))


class SwigluFeedForward(GatedFeedForward):
    """`(Swish(x W) * x V) W2`, Swish(z) = z sigmoid(z) (Shazeer 2020)."""

    activation = staticmethod(F.silu)


class GegluFeedForward(GatedFeedForward):
    """`(GELU(x W) * x V) W2` (Shazeer 2020)."""

    activation = staticmethod(F.gelu)


class NoFeedForward(nn.Module):
    """No feed-forward network: the sub-layer adds zeros."""

    def forward(self, x: Tensor) -> Tensor:
        """Return zeros (B, T, D)."""
        return 0.0 * x  # not new zeros: the norm before it is to have a gradient, as DDP expects of every weight
