"""How a recurrent decoder looks at the source: the attention that came before the Transformer.

Each kind scores every source position against the decoder's state, reads the mean of the encoder's output by the
softmax of the scores, and joins both to the attentional state `tanh(W_c [context; state])` (Luong et al. 2015, eq. 5).
"""

from abc import ABC, abstractmethod

import torch
from torch import Tensor, nn


class Alignment(nn.Module, ABC):
    """One head that looks from the decoder at the encoder.

    Args:
        d_model: D.
    """

    def __init__(self, *, d_model: int) -> None:
        super().__init__()
        self.join = nn.Linear(2 * d_model, d_model, bias=False)  # W_c

    def keys(self, memory: Tensor) -> Tensor:
        """What of the encoder's output (B, S, D) the scores are computed with, the same at every step: (B, S, D)."""
        return memory

    @abstractmethod
    def scores(self, states: Tensor, keys: Tensor) -> Tensor:
        """Of the decoder's states (B, T, D) against keys (B, S, D): (B, T, S)."""

    def forward(self, states: Tensor, keys: Tensor, memory: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
        """Let each state look at the source.

        Args:
            states: (B, T, D), of the decoder.
            keys: (B, S, D), from `keys`.
            memory: (B, S, D), the encoder's output.
            mask: (B, S), True at real tokens.

        Returns:
            Attentional states (B, T, D), and the weights (B, T, S).
        """
        scores = self.scores(states, keys)
        # The lowest finite number, not -inf: a sentence without a real token stays finite instead of turning into NaN.
        weights = scores.masked_fill(~mask[:, None], torch.finfo(scores.dtype).min).softmax(dim=-1)
        return torch.tanh(self.join(torch.cat([weights @ memory, states], dim=-1))), weights


class AdditiveAlignment(Alignment):
    """`v tanh(W s + U h)`, a network with one layer (Bahdanau et al. 2015, appendix A.1.2)."""

    def __init__(self, *, d_model: int) -> None:
        super().__init__(d_model=d_model)
        self.state = nn.Linear(d_model, d_model, bias=False)  # W
        self.key = nn.Linear(d_model, d_model, bias=False)  # U
        self.score = nn.Linear(d_model, 1, bias=False)  # v

    def keys(self, memory: Tensor) -> Tensor:
        """`U h`."""
        return self.key(memory)

    def scores(self, states: Tensor, keys: Tensor) -> Tensor:
        """(B, T, S), by way of (B, T, S, D)."""
        return self.score(torch.tanh(self.state(states)[:, :, None] + keys[:, None])).squeeze(-1)


class DotAlignment(Alignment):
    """`s . h`, nothing learned (Luong et al. 2015, section 3.1)."""

    def scores(self, states: Tensor, keys: Tensor) -> Tensor:
        """(B, T, S)."""
        return states @ keys.transpose(1, 2)


class GeneralAlignment(DotAlignment):
    """`s W h`, multiplicative attention (Luong et al. 2015, section 3.1)."""

    def __init__(self, *, d_model: int) -> None:
        super().__init__(d_model=d_model)
        self.key = nn.Linear(d_model, d_model, bias=False)  # W

    def keys(self, memory: Tensor) -> Tensor:
        """`W h`."""
        return self.key(memory)


class NoAlignment(nn.Module):
    """No attention: the decoder has its first state alone to remember the source by (Sutskever et al. 2014)."""

    def keys(self, memory: Tensor) -> Tensor:
        """Nobody looks at them."""
        return memory

    def forward(self, states: Tensor, keys: Tensor, memory: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
        """The states (B, T, D) as they are, and weights (B, T, 0) of nothing."""
        return states, states[:, :, :0]
