"""Classification: a line and a word for what it is, read by an encoder at its first position (Devlin et al. 2019)."""

from collections.abc import Iterable
from typing import Any

import numpy as np
from torch import nn

from etude.data.batch import Batch, Draw, Rows, make_batch
from etude.data.batching import Examples
from etude.data.corpus import SPLITS
from etude.data.splits import TokenSplit
from etude.data.store import TokenStore
from etude.data.tokenizer import BOS
from etude.errors import UserError
from etude.tasks.perplexity import perplexity, sum_tokens
from etude.tasks.task import Lines, Task, ones


class Classification(Task):
    """Sources with their labels, which stand on the target side; the first subword of a label stands for it.

    The model reads BOS, the line and its end, and is to say the label where BOS is. Measured by accuracy, in per cent,
    and by the perplexity of labels; a label counts as found where no other subword of all is more probable.
    """

    def examples(self, split: TokenSplit) -> Examples:
        """The lines with their labels."""
        return LabelledLines(split)

    def columns(self, source: float, target: float) -> tuple[float, float]:
        """BOS is one more in the source; a label takes one."""
        return source + 1, 1.0

    def check_text(self, store: TokenStore) -> None:
        """See to it that the first subword tells every label from the others.

        Raises:
            UserError: two labels begin alike.
        """
        first: dict[int, str] = {}
        for name in SPLITS:
            targets = store.split(name).targets
            for tokens in np.unique(targets.pad_rows(np.arange(len(targets))), axis=0):
                label = store.tokenizer.decode(tokens.tolist())
                if (other := first.setdefault(int(tokens[0]), label)) != label:
                    raise UserError(
                        f"task=classification reads a label by its first subword, and {other!r} and {label!r} begin "
                        "with the same: rename one of them, or raise tokenizer.vocab_size so that each is one subword"
                    )

    def measure(self, model: nn.Module, batches: Iterable[Batch], store: TokenStore, split: str) -> dict[str, Any]:
        """Perplexity and accuracy of the labels."""
        nats, tokens, right = sum_tokens(model, batches)
        return {"perplexity": perplexity(nats, tokens), "accuracy": 100 * right / tokens, "tokens": tokens}


class LabelledLines(Lines):
    """See `Classification`."""

    def __init__(self, split: TokenSplit) -> None:
        one = ones(split)
        super().__init__(
            split, "source", source_lengths=split.sources.lengths + 1, target_lengths=one, target_counts=one
        )

    def collate(self, rows: Rows, draw: Draw) -> Batch:
        """`source` holds BOS and the lines, `target_out` (B, 1) their labels."""
        source = np.pad(self.text.pad_rows(rows), ((0, 0), (1, 0)), constant_values=BOS)
        return make_batch(source, self.split.targets.pad_rows(rows)[:, :1], rows)
