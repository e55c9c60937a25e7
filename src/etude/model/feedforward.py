"""The position-wise feed-forward network (section 3.3)."""

from collections.abc import Callable, Sequence
from typing import Literal, cast

from torch import Tensor, nn
from torch.nn import functional as F

from etude.model.numbered import Numbered, Place
from etude.model.parts import Factory


def squared_relu(x: Tensor) -> Tensor:
    """Compute max(0, x)^2, element by element (So et al. 2021)."""
    return F.relu(x).square()


Activation = Literal["relu", "squared_relu", "gelu", "swish", "sigmoid", "tanh", "elu", "selu", "softplus", "identity"]
ACTIVATIONS: dict[str, Callable[[Tensor], Tensor]] = {
    "relu": F.relu,
    "squared_relu": squared_relu,
    "gelu": F.gelu,
    "swish": F.silu,
    "sigmoid": F.sigmoid,
    "tanh": F.tanh,
    "elu": F.elu,
    "selu": F.selu,
    "softplus": F.softplus,
    "identity": nn.Identity(),
}


class FeedForward(nn.Module):
    """Base class: `activation(x W1 + b1) W2 + b2`, with `d_ff` inner units; without `bias`, no b1 and b2."""

    activation: Callable[..., Tensor]  # elementwise

    def __init__(self, *, d_model: int, d_ff: int, bias: bool = True) -> None:
        super().__init__()
        self.inner = nn.Linear(d_model, d_ff, bias=bias)
        self.outer = nn.Linear(d_ff, d_model, bias=bias)

    def forward(self, x: Tensor) -> Tensor:
        """Map (B, T, D) to (B, T, D), each position by itself."""
        return self.outer(self.activation(self.inner(x)))


class ReluFeedForward(FeedForward):
    """`max(0, x W1 + b1) W2 + b2`, equation (2)."""

    activation = staticmethod(F.relu)


class GeluFeedForward(FeedForward):
    """`GELU(x W1 + b1) W2 + b2`, GELU(z) = z Phi(z), not its tanh approximation (Hendrycks and Gimpel 2016)."""

    activation = staticmethod(F.gelu)


class SquaredReluFeedForward(FeedForward):
    """`max(0, x W1 + b1)^2 W2 + b2` (So et al. 2021)."""

    activation = staticmethod(squared_relu)


class PlainFeedForward(FeedForward):
    """`activation(x W1 + b1) W2 + b2` with any of the activations."""

    def __init__(self, *, d_model: int, d_ff: int, activation: Activation, bias: bool = True) -> None:
        super().__init__(d_model=d_model, d_ff=d_ff, bias=bias)
        self.activation = ACTIVATIONS[activation]


class GatedFeedForward(nn.Module):
    """`(activation(x W) * x V) W2` with any of the activations, and without biases unless asked for (Shazeer 2020).

    It has three matrices instead of two. With `match_parameters`, the number of inner units is therefore two thirds of
    `d_ff`, rounded, which gives as many parameters and as much computation as the other networks have.
    """

    activation: Callable[..., Tensor]  # elementwise

    def __init__(
        self, *, d_model: int, d_ff: int, activation: Activation, match_parameters: bool, bias: bool = False
    ) -> None:
        super().__init__()
        self.activation = ACTIVATIONS[activation]
        units = round(2 * d_ff / 3) if match_parameters else d_ff
        self.gate = nn.Linear(d_model, units, bias=bias)
        self.inner = nn.Linear(d_model, units, bias=bias)
        self.outer = nn.Linear(units, d_model, bias=bias)

    def forward(self, x: Tensor) -> Tensor:
        """Map (B, T, D) to (B, T, D), each position by itself."""
        return self.outer(self.activation(self.gate(x)) * self.inner(x))


class SwigluFeedForward(GatedFeedForward):
    """`(Swish(x W) * x V) W2`, Swish(z) = z sigmoid(z), with two thirds of `d_ff` (Shazeer 2020)."""

    def __init__(self, *, d_model: int, d_ff: int) -> None:
        super().__init__(d_model=d_model, d_ff=d_ff, activation="swish", match_parameters=True)


class GegluFeedForward(GatedFeedForward):
    """`(GELU(x W) * x V) W2`, with two thirds of `d_ff` (Shazeer 2020)."""

    def __init__(self, *, d_model: int, d_ff: int) -> None:
        super().__init__(d_model=d_model, d_ff=d_ff, activation="gelu", match_parameters=True)


class NormFormerFeedForward(ReluFeedForward):
    """`LayerNorm(max(0, x W1 + b1)) W2 + b2` (Shleifer et al. 2021)."""

    def __init__(self, *, d_model: int, d_ff: int, eps: float) -> None:
        super().__init__(d_model=d_model, d_ff=d_ff)
        self.norm = nn.LayerNorm(d_ff, eps=eps)

    def forward(self, x: Tensor) -> Tensor:
        """Map (B, T, D) to (B, T, D), each position by itself."""
        out: Tensor = self.outer(self.norm(self.activation(self.inner(x))))
        return out


class NoFeedForward(nn.Module):
    """No feed-forward network: the sub-layer adds zeros."""

    def forward(self, x: Tensor) -> Tensor:
        """Return zeros (B, T, D)."""
        return 0.0 * x  # not new zeros: the norm before it is to have a gradient, as DDP expects of every weight


class InSomeLayers(Numbered):
    """One network in some layers of a stack, another in the rest.

    Args:
        inside: makes the network of the chosen layers.
        outside: makes that of all others.
        stacks: which have chosen layers: "encoder", "decoder" or both.
        behind: how many layers come after the last that is chosen.
        every: counted back from there, each so many-th is chosen; null: that one alone.

    Raises:
        ValueError: a stack has no more layers than come after the last that is chosen.
    """

    network: nn.Module

    def __init__(
        self,
        *,
        inside: Factory,
        outside: Factory,
        stacks: Sequence[Literal["encoder", "decoder"]],
        behind: int,
        every: int | None,
    ) -> None:
        super().__init__()
        self.inside, self.outside, self.stacks = inside, outside, [*stacks]
        self.behind, self.every = behind, every
        self.network = outside()

    def set_place(self, place: Place) -> None:
        """Make the network of the layer."""
        if place.stack not in self.stacks:
            return
        if self.behind >= place.n_layers:
            raise ValueError(
                f"of {place.n_layers} layers, none has {self.behind} behind it: "
                f"say model.feedforward.behind={place.n_layers - 1}"
            )
        back = place.n_layers - 1 - self.behind - place.layer
        if back == 0 or (self.every and back > 0 and back % self.every == 0):
            self.network = self.inside()

    def forward(self, x: Tensor) -> Tensor:
        """Map (B, T, D) to (B, T, D), each position by itself."""
        return cast(Tensor, self.network(x))
