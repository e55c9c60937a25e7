"""Attention from a recurrent decoder to the source, as it was before the Transformer.

Each kind scores every source position against the decoder's state, averages the encoder's output with the softmax of
the scores as weights, and combines both to the attentional state `tanh(W_c [context; state])` (Luong et al. 2015,
eq. 5).
"""

from abc import ABC, abstractmethod

import torch
from torch import Tensor, nn


class Alignment(nn.Module, ABC):
    """Base class: attention with one head from the decoder to the encoder.

    Args:
        d_model: D.
    """

    def __init__(self, *, d_model: int) -> None:
        super().__init__()
        self.join = nn.Linear(2 * d_model, d_model, bias=False)  # W_c

    def keys(self, memory: Tensor) -> Tensor:
        """Compute the keys (B, S, D), the same at every step, from the encoder's output (B, S, D)."""
        return memory

    @abstractmethod
    def scores(self, states: Tensor, keys: Tensor) -> Tensor:
        """Score the decoder's states (B, T, D) against keys (B, S, D); returns (B, T, S)."""

    def forward(self, states: Tensor, keys: Tensor, memory: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
        """Attend from each state of the decoder to the source.

        Args:
            states: (B, T, D), the decoder's states.
            keys: (B, S, D), as `self.keys` returns them.
            memory: (B, S, D), the encoder's output.
            mask: (B, S), True at real tokens.

        Returns:
            Attentional states (B, T, D), and attention weights (B, T, S).
        """
        scores = self.scores(states, keys)
        # The lowest finite number, not -inf: a sentence without a real token gives finite weights instead of NaN.
        weights = scores.masked_fill(~mask[:, None], torch.finfo(scores.dtype).min).softmax(dim=-1)
        return torch.tanh(self.join(torch.cat([weights @ memory, states], dim=-1))), weights


class AdditiveAlignment(Alignment):
    """Scores `v tanh(W s + U h)`, a network with one hidden layer (Bahdanau et al. 2015, appendix A.1.2)."""

    def __init__(self, *, d_model: int) -> None:
        super().__init__(d_model=d_model)
        self.state = nn.Linear(d_model, d_model, bias=False)  # W
        self.key = nn.Linear(d_model, d_model, bias=False)  # U
        self.score = nn.Linear(d_model, 1, bias=False)  # v

    def keys(self, memory: Tensor) -> Tensor:
        """Compute `U h`."""
        return self.key(memory)

    def scores(self, states: Tensor, keys: Tensor) -> Tensor:
        """Compute the scores (B, T, S); takes memory for (B, T, S, D)."""
        return self.score(torch.tanh(self.state(states)[:, :, None] + keys[:, None])).squeeze(-1)


class DotAlignment(Alignment):
    """Scores `s . h`, without parameters (Luong et al. 2015, section 3.1)."""

    def scores(self, states: Tensor, keys: Tensor) -> Tensor:
        """Compute the scores (B, T, S)."""
        return states @ keys.transpose(1, 2)


class GeneralAlignment(DotAlignment):
    """Scores `s W h`, multiplicative attention (Luong et al. 2015, section 3.1)."""

    def __init__(self, *, d_model: int) -> None:
        super().__init__(d_model=d_model)
        self.key = nn.Linear(d_model, d_model, bias=False)  # W

    def keys(self, memory: Tensor) -> Tensor:
        """Compute `W h`."""
        return self.key(memory)


class NoAlignment(nn.Module):
    """No attention: the decoder knows the source from its initial state only (Sutskever et al. 2014)."""

    def keys(self, memory: Tensor) -> Tensor:
        """Return `memory` unchanged; it is not used."""
        return memory

    def forward(self, states: Tensor, keys: Tensor, memory: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
        """Return the states (B, T, D) unchanged, and empty weights (B, T, 0)."""
        return states, states[:, :, :0]
