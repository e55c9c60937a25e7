"""The base class of tasks: how rows become batches, what is measured after training, and which text is refused.

A task is the class that `conf/task/*.yaml` names. Every model is called with (source, source_mask, target_in) and
returns logits of `target_out`; the loss is computed where that is not padding. Training, validation, resuming and every
command are therefore the same for all tasks.
"""

from abc import ABC, abstractmethod
from collections.abc import Collection, Iterable
from typing import Any

import numpy as np
from torch import nn

from etude.data.batch import Batch, Rows
from etude.data.batching import Examples
from etude.data.contexts import Contexts
from etude.data.splits import SIDES, TokenArray, TokenSplit
from etude.data.store import TokenStore
from etude.data.tokenizer import UNK
from etude.errors import UserError
from etude.tasks.perplexity import perplexity, sum_tokens

Config = dict[str, Any]


class Task(ABC):
    """Base class of tasks."""

    verbs: tuple[str, ...] = ("analyze",)
    """The commands `etude VERB run=...`, apart from `evaluate`, that can be applied to a trained model of the task."""

    methods: tuple[str, ...] = ("forward",)
    """The methods that a model must have."""

    further_tokens: int = 0
    """The tokens that the task needs beyond those of the text, the last rows of the vocabulary."""

    @abstractmethod
    def examples(self, split: TokenSplit) -> Examples:
        """Return the rows of a split as the task reads them."""

    def contexts(self, split: Contexts) -> Examples:
        """Return the contexts of a split of running text as the task reads them.

        Raises:
            UserError: the task reads lines alone.
        """
        raise UserError(
            f"{type(self).__name__} reads lines, and this is running text: say task=language_modelling, or another data"
        )

    @abstractmethod
    def columns(self, source: float, target: float) -> tuple[float, float]:
        """Return the columns that a pair takes in `source` and `target_in` of a batch.

        Args:
            source, target: the tokens of its two lines, end tokens counted; may be means. Of running text, those of
                a context, twice.
        """

    def counted(self, target: float) -> float:
        """Return how many tokens of a pair are in the loss, given the columns that it takes in `target_in`."""
        return target

    def check_text(self, store: TokenStore) -> None:  # noqa: B027 - most tasks take any text
        """Check before training that the text is of the kind that the task needs.

        Raises:
            UserError: it is not.
        """

    def measure(self, model: nn.Module, batches: Iterable[Batch], store: TokenStore, split: str) -> dict[str, Any]:
        """Score a model without generating text.

        Args:
            model: a trained model.
            batches: the batches of the split, or some of them.
            store, split: the text, and "valid" or "test".

        Returns:
            "perplexity", "tokens" (the number of tokens scored), and the other metrics of the task.
        """
        nats, tokens, _ = sum_tokens(model, batches)
        return {"perplexity": perplexity(nats, tokens), "tokens": tokens}

    def answer(self, config: Config, model: nn.Module, store: TokenStore, split: str) -> dict[str, list[str]]:
        """Generate the text that the parts of `metrics` score.

        Returns:
            "sources", "references" and "hypotheses", line by line; empty if the task generates nothing to score.
        """
        return {}


class Lines:
    """Base class of `Examples` that read one side of the text; a subclass adds `collate`.

    Args:
        split: the text.
        side: "source" or "target", the side that is read.
        source_lengths, target_lengths, target_counts: see `Examples`.
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
        """Return the most columns that a row takes as "source" or "target", and the location of that row."""
        _, place = self.split.longest(self.side)
        return int((self.source_lengths if side == "source" else self.target_lengths).max()), place


def side_of(split: TokenSplit, side: str) -> TokenArray:
    """Return the tokens of the "source" or "target" side."""
    return split.sources if side == "source" else split.targets


def check_side(side: str) -> None:
    """Check that `task.side` is "source" or "target".

    Raises:
        ValueError: it is neither.
    """
    if side not in SIDES:
        raise ValueError(f"task.side={side}: say {' or '.join(SIDES)}")


def unknown_share(batches: Collection[Batch]) -> list[str]:
    """Return the part of a signature that says what share of the target tokens is unknown; empty if none is."""
    unknown = sum(int((batch.target_out == UNK).sum()) for batch in batches)
    return [f"unknown:{100 * unknown / sum(batch.target_tokens for batch in batches):.2f}%"] if unknown else []


def ones(split: TokenSplit) -> Rows:
    """Return an array of ones, (rows,)."""
    return np.ones(len(split), dtype=np.int64)
