"""The factories of parts that a model passes to its encoder and its decoder, as the config chose them."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from torch import nn

Factory = Callable[..., Any]  # makes a part; called anew for every layer


@dataclass(frozen=True)
class Parts:
    """Factories from which an encoder or a decoder takes what it needs.

    Attributes:
        position: called with `causal`, once for a stack.
        attention: called with `is_cross`: whether it attends from the decoder to the encoder.
        norm: makes a norm of vectors of size D.
        residual: makes the wrapping of a sub-layer; its `final_norm()` follows the last layer of a stack, and its
            `initial()`, if it has one, precedes the first.
        feedforward: makes the position-wise network.
        dropout: P_drop on the sum of embedding and position (section 5.4).
        read: makes that with which a layer of the decoder reads the encoder's output, as (B, S, D).
    """

    position: Factory
    attention: Factory
    norm: Factory
    residual: Factory
    feedforward: Factory
    dropout: float
    read: Factory = nn.Identity

    def begin(self) -> nn.Module:
        """Make what a stack begins with: what the residual connections have in `initial`, if anything."""
        made: nn.Module = getattr(self.residual(), "initial", nn.Identity)()
        return made
