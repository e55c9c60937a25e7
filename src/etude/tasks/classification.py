"""Classification of lines by an encoder, which predicts the label at its first position (Devlin et al. 2019)."""

from collections.abc import Iterable
from typing import Any

import numpy as np
from torch import nn

from etude.data.batch import Batch, Draw, Rows, make_batch
from etude.data.batching import Examples
from etude.data.corpus import SPLITS
from etude.data.splits import TokenSplit
from etude.data.store import TokenStore
from etude.data.tokenizer import BOS, UNK
from etude.errors import UserError
from etude.tasks.perplexity import perplexity, sum_tokens
from etude.tasks.task import Lines, Task, ones


class Classification(Task):
    """Classification of the sources; the labels are the target side, and each is predicted by its first subword.

    The model reads BOS, the line and EOS, and predicts the label at BOS. Metrics: accuracy, in per cent, and perplexity
    of the labels. A label counts as correct if no other subword of the vocabulary is more probable.
    """

    def examples(self, split: TokenSplit) -> Examples:
        """Return the lines with their labels."""
        return LabelledLines(split)

    def columns(self, source: float, target: float) -> tuple[float, float]:
        """Return one column more than `source`, for BOS, and one for the label."""
        return source + 1, 1.0

    def check_text(self, store: TokenStore) -> None:
        """Check that no two labels start with the same subword, and that training labels have no unknown ones.

        Raises:
            UserError: two do, or one has: such labels could not be told apart.
        """
        first: dict[int, str] = {}
        for name in SPLITS:
            targets = store.split(name).targets
            for tokens in np.unique(targets.pad_rows(np.arange(len(targets))), axis=0):
                label = store.tokenizer.decode(tokens.tolist())
                if name == "train" and UNK in tokens:  # elsewhere it counts as wrong, since nobody has learned it
                    raise UserError(
                        f"task=classification: the vocabulary does not hold the whole label {label.strip()!r}, so that "
                        "such labels would count as one: raise tokenizer.vocab_size, or tokenizer.character_coverage"
                    )
                if (other := first.setdefault(int(tokens[0]), label)) != label:
                    raise UserError(
                        f"task=classification reads a label by its first subword, and {other!r} and {label!r} begin "
                        "with the same: rename one of them, or raise tokenizer.vocab_size so that each is one subword"
                    )

    def measure(self, model: nn.Module, batches: Iterable[Batch], store: TokenStore, split: str) -> dict[str, Any]:
        """Compute perplexity and accuracy of the labels."""
        nats, tokens, right = sum_tokens(model, batches)
        return {"perplexity": perplexity(nats, tokens), "accuracy": 100 * right / tokens, "tokens": tokens}


class LabelledLines(Lines):
    """The examples of `Classification`."""

    def __init__(self, split: TokenSplit) -> None:
        one = ones(split)
        super().__init__(
            split, "source", source_lengths=split.sources.lengths + 1, target_lengths=one, target_counts=one
        )

    def collate(self, rows: Rows, draw: Draw) -> Batch:
        """Make a batch whose `source` holds BOS and the lines, and `target_out` (B, 1) their labels."""
        source = np.pad(self.text.pad_rows(rows), ((0, 0), (1, 0)), constant_values=BOS)
        return make_batch(source, self.split.targets.pad_rows(rows)[:, :1], rows)
