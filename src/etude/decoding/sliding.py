"""Decoding beyond the length that a model was trained on: it forgets what is too long ago."""

from typing import Any

import torch
from torch import Tensor, nn

from etude.decoding.beam import StepwiseModel


class Sliding(nn.Module):
    """A language model that sees at most `context` tokens: those of a full context but for the last half are forgotten.

    Args:
        model: the model, whose source is the same for all rows.
        context: the most tokens that it is to see.
    """

    def __init__(self, model: StepwiseModel[Any], context: int) -> None:
        super().__init__()
        self.model, self.context = model, context

    def start(self, source: Tensor, source_mask: Tensor) -> "SlidingState":
        """Begin decoding from a source (B, S) and its mask (B, S)."""
        return SlidingState(self.model.start(source, source_mask), source, source_mask)

    def step(self, tokens: Tensor, state: "SlidingState") -> Tensor:
        """Decode one more token (R,) per row, and return logits (R, V) of the one after it."""
        if state.tokens.size(1) == self.context:
            state.tokens = state.tokens[:, self.context - self.context // 2 :]
            state.inner = self.model.start(state.source, state.source_mask)
            for column in state.tokens.unbind(1):
                self.model.step(column, state.inner)
        state.tokens = torch.cat([state.tokens, tokens[:, None]], dim=1)
        return self.model.step(tokens, state.inner)


class SlidingState:
    """The state of the model, with the tokens (R, T) in it, and the source to begin again from."""

    def __init__(self, inner: Any, source: Tensor, source_mask: Tensor) -> None:
        self.inner, self.source, self.source_mask = inner, source, source_mask
        self.tokens = source[:, :0]

    def reorder(self, rows: Tensor) -> None:
        """Keep `rows` (R',) in that order, in place; a row may be repeated or left out."""
        self.inner.reorder(rows)
        self.source, self.source_mask = self.source[rows], self.source_mask[rows]
        self.tokens = self.tokens[rows]
