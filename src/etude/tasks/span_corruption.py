"""Span corruption: give back the spans that are missing in a text (T5: Raffel et al. 2020, section 3.1.4)."""

import numpy as np
import numpy.typing as npt

from etude.data.batch import Batch, Draw, Rows, make_batch
from etude.data.batching import Examples
from etude.data.contexts import Contexts
from etude.data.splits import TokenSplit
from etude.data.tokenizer import EOS, PAD
from etude.errors import UserError
from etude.tasks.masked_language_modelling import hash_places
from etude.tasks.task import Task


class SpanCorruption(Task):
    """An encoder-decoder reads a context in which a sentinel stands for each missing span, and predicts the spans.

    Of a context of n tokens, `rate` n are taken out, rounded, at least one, in spans of `mean_span` tokens in the mean.
    The source is the rest of the context with the sentinels, the target each sentinel with the tokens of its span; both
    end with an end token. The first span is the first sentinel's. The spans depend on the seed, the epoch and the
    context; in evaluation, they are the same for all models and seeds.

    Args:
        rate: the share of tokens that are taken out.
        mean_span: the mean length of a span.
        sentinels: the number of tokens that the vocabulary has for this, beyond those of the text.

    Raises:
        ValueError: a value is out of its range.
    """

    verbs = ()
    methods = ("forward", "start", "step")

    def __init__(self, *, rate: float, mean_span: float, sentinels: int) -> None:
        if not 0 < rate < 1:
            raise ValueError(f"task.rate must lie in (0, 1), not {rate}")
        if mean_span < 1 or sentinels < 1:
            raise ValueError(f"task.mean_span={mean_span} and task.sentinels={sentinels} must be at least 1")
        self.rate, self.mean_span, self.further_tokens = rate, mean_span, sentinels

    def examples(self, split: TokenSplit) -> Examples:
        """Refuse lines.

        Raises:
            UserError: always.
        """
        raise UserError("SpanCorruption reads running text, and this data has lines: say data=text")

    def contexts(self, split: Contexts) -> Examples:
        """Return the contexts with their spans."""
        return SpanContexts(split, self)

    def columns(self, source: float, target: float) -> tuple[float, float]:
        """Return the tokens of what is left and of what is taken out, each with sentinels and an end token."""
        taken, spans = self.count(np.array([round(source)]))
        return float(source - taken[0] + spans[0] + 1), float(taken[0] + spans[0] + 1)

    def count(self, lengths: Rows) -> tuple[Rows, Rows]:
        """Return how many tokens are taken out of contexts of these lengths, and in how many spans."""
        most = np.maximum(1, lengths - 1)
        taken = np.clip(np.floor(self.rate * lengths + 0.5).astype(np.int64), 1, most)
        spans = np.floor(taken / self.mean_span + 0.5).astype(np.int64)
        return taken, np.clip(spans, 1, np.minimum(taken, np.maximum(1, lengths - taken)))


class SpanContexts:
    """The examples of `SpanCorruption`.

    Attributes:
        source_lengths, target_lengths, target_counts: see `etude.data.batching.Examples`.

    Raises:
        UserError: a context has more spans than there are sentinels, or overlaps another.
    """

    def __init__(self, split: Contexts, task: SpanCorruption) -> None:
        if (split.target_counts != split.target_lengths).any():
            raise UserError(f"data.stride: contexts of the {split.name} text overlap, as spans may not: leave it out")
        self._split, self._first_sentinel = split, split.vocab_size
        self._taken, self._spans = task.count(split.target_lengths)
        if (most := int(self._spans.max())) > task.further_tokens:
            raise UserError(
                f"task.sentinels={task.further_tokens}: a context of {split.target_lengths.max()} tokens has {most} "
                "spans: raise it, or lower budget.context"
            )
        self.source_lengths = split.target_lengths - self._taken + self._spans + 1
        self.target_lengths = self.target_counts = self._taken + self._spans + 1

    def __len__(self) -> int:
        return len(self._split)

    def longest(self, side: str) -> tuple[int, str]:
        """Return the most columns that a context takes as "source" or "target", and what it is."""
        lengths = self.source_lengths if side == "source" else self.target_lengths
        return int(lengths.max()), self._split.longest(side)[1]

    def collate(self, rows: Rows, draw: Draw) -> Batch:
        """Make a batch; the spans are a function of `draw` and of each row."""
        _, tokens = self._split.read(rows, draw)  # (B, T)
        lengths, taken, spans = self._split.target_lengths[rows], self._taken[rows], self._spans[rows]
        out = _random_parts(hash_places(draw, rows, np.arange(taken.max()), 0), taken, spans)
        left = _random_parts(
            hash_places(draw, rows, np.arange(max(1, (lengths - taken).max())), 1), lengths - taken, spans
        )
        source = np.full((len(rows), int(self.source_lengths[rows].max())), PAD)
        target = np.full((len(rows), int(self.target_lengths[rows].max())), PAD)
        for row, n in enumerate(spans.tolist()):
            sentinels = self._first_sentinel + np.arange(n)
            borders = np.cumsum(np.stack([left[row][:n], out[row][:n]], axis=1).ravel())[:-1]
            parts = np.split(tokens[row, : lengths[row]], borders)  # what is left and what is taken, alternately
            ends = [EOS]
            read = [*(piece for pair in zip(parts[::2], sentinels[:, None], strict=True) for piece in pair), ends]
            told = [*(piece for pair in zip(sentinels[:, None], parts[1::2], strict=True) for piece in pair), ends]
            for array, pieces in ((source, read), (target, told)):
                whole = np.concatenate(pieces)
                array[row, : len(whole)] = whole
        return make_batch(source, target, rows)


def _random_parts(keys: npt.NDArray[np.uint64], totals: Rows, parts: Rows) -> list[Rows]:
    """Divide each total into so many parts at random, all ways with parts of at least one being as likely.

    Args:
        keys: random numbers (B, totals.max()).
        totals, parts: (B,); a total of zero is one part of zero.
    """
    found = []
    for row, (total, n) in enumerate(zip(totals.tolist(), parts.tolist(), strict=True)):
        cuts = 1 + np.sort(keys[row, : max(0, total - 1)].argsort(kind="stable")[: n - 1])
        found.append(np.diff(np.concatenate([[0], cuts, [total]])))
    return found
