"""Language modelling: each line from its own beginning, by a decoder alone (Radford et al. 2018)."""

import math
from collections.abc import Iterable
from typing import Any

import numpy as np
from torch import nn

from etude.data.batch import Batch, Draw, Rows, make_batch
from etude.data.batching import Examples
from etude.data.splits import SIDES, TokenSplit
from etude.data.store import TokenStore
from etude.data.tokenizer import EOS
from etude.tasks.perplexity import perplexity, sum_tokens
from etude.tasks.task import Lines, Task, check_side, ones, side_of


class LanguageModelling(Task):
    """One side of the text; the source of every line is a single end token, which nobody reads.

    Measured by perplexity per subword, and by bits per byte, which text of another vocabulary compares with: the nats
    of all tokens, end tokens counted, over ln 2, and over the bytes of these lines in UTF-8 with a byte for each line's
    end. Of a line that was cut to `budget.max_tokens` the bytes of what is left are counted.

    Args:
        side: of the corpus: "source" or "target".

    Raises:
        ValueError: there is no such side.
    """

    verbs = ("generate", "analyze")
    methods = ("forward", "start", "step")

    def __init__(self, *, side: str) -> None:
        check_side(side)
        self.side = side

    def examples(self, split: TokenSplit) -> Examples:
        """The lines."""
        return TextLines(split, self.side)

    def columns(self, source: float, target: float) -> tuple[float, float]:
        """One, and a column a token."""
        return 1.0, source if self.side == "source" else target

    def measure(self, model: nn.Module, batches: Iterable[Batch], store: TokenStore, split: str) -> dict[str, Any]:
        """Perplexity and bits per byte."""
        batches = list(batches)
        nats, tokens, _ = sum_tokens(model, batches)
        rows = np.concatenate([batch.rows for batch in batches])
        bits = nats / math.log(2) / count_bytes(store, split, self.side, rows)
        return {"perplexity": perplexity(nats, tokens), "bits_per_byte": bits, "tokens": tokens}


class TextLines(Lines):
    """See `LanguageModelling`."""

    def __init__(self, split: TokenSplit, side: str) -> None:
        lengths = side_of(split, side).lengths
        super().__init__(split, side, source_lengths=ones(split), target_lengths=lengths, target_counts=lengths)

    def collate(self, rows: Rows, draw: Draw) -> Batch:
        """`target_out` holds the lines; nothing is left to chance."""
        return make_batch(np.full((len(rows), 1), EOS), self.text.pad_rows(rows), rows)


def count_bytes(store: TokenStore, split: str, side: str, rows: Rows) -> int:
    """Bytes in UTF-8 that the tokens of some rows stand for; an end token stands for one.

    White space counts as one space, as the tokens have it.
    """
    tokens, lines = side_of(store.split(split), side), store.text(split)[SIDES.index(side)]
    limit = store.meta["limits"]["max_tokens"]
    total = 0
    for row in rows.tolist():
        of_row = tokens[row]
        whole = len(of_row) <= limit  # a longer one may have been cut
        text = " ".join(lines[row].split()) if whole else store.tokenizer.decode(of_row.tolist())
        total += len(text.encode()) + int(of_row[-1] == EOS)
    return total
