"""What a task is: how rows become batches, what is measured at the end, and what is refused.

A task is the class that `conf/task/*.yaml` names. Every model is called with (source, source_mask, target_in) and gives
logits of `target_out`; the loss is of all that is not padding there. So training, validation, resuming and every verb
are the same for all of them.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterable
from typing import Any

import numpy as np
from torch import nn

from etude.data.batch import Batch, Rows
from etude.data.batching import Examples
from etude.data.splits import SIDES, TokenSplit
from etude.data.store import TokenStore
from etude.data.token_array import TokenArray
from etude.tasks.perplexity import perplexity, sum_tokens

Config = dict[str, Any]


class Task(ABC):
    """One task."""

    verbs: tuple[str, ...] = ("analyze",)
    """`etude VERB run=...` that put a trained model of the task to use, beside `evaluate`."""

    methods: tuple[str, ...] = ("forward",)
    """What is called of a model."""

    @abstractmethod
    def examples(self, split: TokenSplit) -> Examples:
        """The rows of a split as the task sees them."""

    @abstractmethod
    def columns(self, source: float, target: float) -> tuple[float, float]:
        """What lines of so many tokens, the end token counted, take in `source` and in `target_in` of a batch."""

    def check_text(self, store: TokenStore) -> None:  # noqa: B027 - most tasks take any text
        """See to it, before training, that the text is of the kind that the task needs.

        Raises:
            UserError: it is not.
        """

    def measure(self, model: nn.Module, batches: Iterable[Batch], store: TokenStore, split: str) -> dict[str, Any]:
        """Score a model without letting it generate; what is no metric in it says what the scores are of.

        Args:
            model: trained.
            batches: of the split, or some of them.
            store, split: the text, and "valid" or "test".

        Returns:
            "perplexity", "tokens", and what else the task measures.
        """
        nats, tokens, _ = sum_tokens(model, batches)
        return {"perplexity": perplexity(nats, tokens), "tokens": tokens}

    def answer(self, config: Config, model: nn.Module, store: TokenStore, split: str) -> dict[str, list[str]]:
        """Let a model generate what the parts of `metrics` score.

        Returns:
            "sources", "references" and "hypotheses", line by line; nothing where the task has no such text.
        """
        return {}


class Lines:
    """What the tasks on one side of the text have in common; a subclass gives `collate`.

    Args:
        split: the text.
        side: "source" or "target", the side that is read.
        source_lengths, target_lengths, target_counts: as `Examples` has them.
    """

    def __init__(
        self, split: TokenSplit, side: str, *, source_lengths: Rows, target_lengths: Rows, target_counts: Rows
    ) -> None:
        self.split, self.side, self.text = split, side, side_of(split, side)
        self.source_lengths, self.target_lengths = source_lengths, target_lengths
        self.target_counts = target_counts

    def __len__(self) -> int:
        return len(self.split)

    def longest(self, side: str) -> tuple[int, str]:
        """The most columns that a row takes on a side, and where its line stands."""
        _, place = self.split.longest(self.side)
        return int((self.source_lengths if side == "source" else self.target_lengths).max()), place


def side_of(split: TokenSplit, side: str) -> TokenArray:
    """The tokens of the "source" or the "target"."""
    return split.sources if side == "source" else split.targets


def check_side(side: str) -> None:
    """See to it that `task.side` is one.

    Raises:
        ValueError: it is not.
    """
    if side not in SIDES:
        raise ValueError(f"task.side={side}: say {' or '.join(SIDES)}")


def ones(split: TokenSplit) -> Rows:
    """(rows,) of 1."""
    return np.ones(len(split), dtype=np.int64)
