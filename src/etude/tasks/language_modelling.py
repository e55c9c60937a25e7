"""Language modelling: a decoder without encoder predicts a text, token by token (Radford et al. 2018)."""

import math
from collections.abc import Iterable
from typing import Any, cast

import numpy as np
from torch import nn

from etude.data.batch import Batch, Draw, Rows, make_batch
from etude.data.batching import Examples
from etude.data.contexts import Contexts
from etude.data.corpus import first_reference
from etude.data.splits import SIDES, TokenSplit
from etude.data.store import TokenStore
from etude.data.tokenizer import EOS, IDENTITY
from etude.tasks.perplexity import perplexity, sum_tokens
from etude.tasks.task import Lines, Task, check_side, ones, side_of, unknown_share


class LanguageModelling(Task):
    """Language modelling of running text, or of one side of lines; the source is a single end token, which is not read.

    Metrics: perplexity per subword, and bits per byte, which can be compared across vocabularies. Bits per byte are the
    nats of all tokens, end tokens included, over ln 2, over the bytes of these lines in UTF-8, with one byte for each
    end of a line. Of a line that was cut to `budget.max_tokens`, only the bytes that are left count. Of running text,
    all bytes count, and none for the end of a document. Its signature says what it does not cost to leave out: the
    share of unknown tokens, and a normalisation of the text.

    Args:
        side: the side of the corpus, "source" or "target".

    Raises:
        ValueError: `side` is neither.
    """

    verbs = ("generate", "analyze")
    methods = ("forward", "start", "step")

    def __init__(self, *, side: str) -> None:
        check_side(side)
        self.side = side

    def examples(self, split: TokenSplit) -> Examples:
        """Return the lines of the side that is modelled."""
        return TextLines(split, self.side)

    def contexts(self, split: Contexts) -> Examples:
        """Return the contexts of running text, as they are."""
        return split

    def columns(self, source: float, target: float) -> tuple[float, float]:
        """Return one source column, and one target column per token."""
        return 1.0, source if self.side == "source" else target

    def measure(self, model: nn.Module, batches: Iterable[Batch], store: TokenStore, split: str) -> dict[str, Any]:
        """Compute perplexity and bits per byte, with its signature if the tokens do not hold the whole text."""
        batches = list(batches)
        nats, tokens, _ = sum_tokens(model, batches)
        if store.is_running:
            counts = store.meta["splits"][split]
            size = counts["bytes"] * tokens / counts["tokens"]  # of all of them, unless some batches are left out
        else:
            size = count_bytes(store, split, self.side, np.concatenate([batch.rows for batch in batches]))
        bits = nats / math.log(2) / size
        normalization = store.meta["tokenizer"].get("normalization", IDENTITY)
        lost = unknown_share(batches)
        lost += [f"normalization:{normalization}"] if normalization != IDENTITY else []
        signature = {"bits_per_byte_signature": "|".join(lost)} if lost else {}
        return {"perplexity": perplexity(nats, tokens), "bits_per_byte": bits, **signature, "tokens": tokens}


class TextLines(Lines):
    """The examples of `LanguageModelling`."""

    def __init__(self, split: TokenSplit, side: str) -> None:
        lengths = side_of(split, side).lengths
        super().__init__(split, side, source_lengths=ones(split), target_lengths=lengths, target_counts=lengths)

    def collate(self, rows: Rows, draw: Draw) -> Batch:
        """Make a batch whose `target_out` holds the lines; `draw` is not used."""
        return make_batch(np.full((len(rows), 1), EOS), self.text.pad_rows(rows), rows)


def count_bytes(store: TokenStore, split: str, side: str, rows: Rows) -> int:
    """Count the bytes in UTF-8 of the text that the tokens of some rows encode; an end token counts as one byte.

    A sequence of white space counts as one space, unless the tokens keep it.
    """
    tokens, lines = side_of(cast(TokenSplit, store.split(split)), side), store.text(split)[SIDES.index(side)]
    if side == "target":
        lines = [first_reference(line) for line in lines]
    limit = store.meta["limits"]["max_tokens"]
    total = 0
    for row in rows.tolist():
        row_tokens = tokens[row]
        # a row of more tokens, its end token among them, may have been cut
        complete = len(row_tokens) <= limit or len(store.tokenizer.encode(lines[row])) <= limit
        text = " ".join(lines[row].split())
        if not complete or text != lines[row]:
            read = store.tokenizer.decode(row_tokens.tolist())
            text = read if not complete or read == lines[row] else text
        total += len(text.encode()) + int(row_tokens[-1] == EOS)
    return total
