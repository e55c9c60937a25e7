"""From lines of text to lines of text: pieces, batches of like length, search, and the lines in their order again."""

import logging
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import islice

import torch
from torch import Tensor

from etude.data.tokenizer import EOS, PAD, Tokenizer
from etude.decoding.beam import BeamSearch
from etude.model.transformer import Transformer

logger = logging.getLogger(__name__)


class Translator:
    """A model, the word pieces it was trained with, and a way to search.

    Args:
        model: translates on the device where it is.
        tokenizer: text to pieces and back.
        search: finds the translation of a batch.
        batch_tokens: source tokens that a batch may hold, padding and end tokens counted; a longer line is alone.
        max_source_tokens: word pieces of a line that are read; the rest is cut off, and a warning says how often.
    """

    def __init__(
        self,
        model: Transformer,
        tokenizer: Tokenizer,
        search: BeamSearch,
        *,
        batch_tokens: int,
        max_source_tokens: int,
    ) -> None:
        self.model, self.tokenizer, self.search = model, tokenizer, search
        self.batch_tokens, self.max_source_tokens = batch_tokens, max_source_tokens

    def translate(self, lines: Iterable[str]) -> list[str]:
        """One line for each line, in the same order; a blank line for a blank one."""
        sources = self._sources(lines)
        translations = [""] * len(sources)
        with _evaluating(self.model):
            for rows in self._batches([len(source) for source in sources]):
                found = self.search(self.model, *self._padded([sources[row] for row in rows]))
                for row, hypotheses in zip(rows, found, strict=True):
                    translations[row] = " ".join(self.tokenizer.decode(hypotheses[0].tokens).split())
        return translations

    def translate_stream(self, lines: Iterable[str], *, chunk: int = 512) -> Iterator[str]:
        """As `translate`, but answers after every `chunk` lines, so that endless input can be piped through."""
        rest = iter(lines)
        while block := list(islice(rest, chunk)):
            yield from self.translate(block)

    def _sources(self, lines: Iterable[str]) -> list[list[int]]:
        """Pieces and end token of every line; nothing for a blank one."""
        pieces = self.tokenizer.encode_all(lines)
        most = self.max_source_tokens
        if cut := sum(len(line) > most for line in pieces):
            logger.warning("%d of %d lines had more than %d word pieces and were cut", cut, len(pieces), most)
        return [[*line[:most], EOS] if line else [] for line in pieces]

    def _batches(self, lengths: Sequence[int]) -> Iterator[list[int]]:
        """Rows of like length, the longest first, so that a batch too large for the memory shows at once."""
        rows = sorted((row for row, length in enumerate(lengths) if length), key=lambda row: -lengths[row])
        while rows:
            held = max(1, self.batch_tokens // lengths[rows[0]])
            yield rows[:held]
            rows = rows[held:]

    def _padded(self, sources: list[list[int]]) -> tuple[Tensor, Tensor]:
        """Source (B, S) and mask (B, S) where the model is."""
        longest = max(len(source) for source in sources)
        source = torch.tensor([line + [PAD] * (longest - len(line)) for line in sources])
        source = source.to(next(self.model.parameters()).device)
        return source, source != PAD


@contextmanager
def _evaluating(model: Transformer) -> Iterator[None]:
    """No dropout inside; afterwards the mode that was."""
    training = model.training
    model.eval()
    try:
        yield
    finally:
        model.train(training)
