"""What a model hands to its encoder and its decoder: the parts that its axes chose, to be made anew for every layer."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

Factory = Callable[..., Any]  # makes a part; every layer gets its own


@dataclass(frozen=True)
class Parts:
    """Of these an encoder or a decoder takes what it needs.

    Attributes:
        position: called with `causal`, once for a stack.
        attention: called with whether it looks from the decoder at the encoder.
        norm: a norm of D-vectors.
        residual: wraps a sub-layer; its `final_norm()` stands after a stack.
        feedforward: the position-wise network.
        dropout: P_drop on the sum of embedding and position (section 5.4).
    """

    position: Factory
    attention: Factory
    norm: Factory
    residual: Factory
    feedforward: Factory
    dropout: float
