"""From lines of text to lines of text: tokens, batches of like length, search, and the lines in their order again."""

import logging
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice

import torch
from torch.nn.utils.rnn import pad_sequence

from etude.data.tokenizer import EOS, PAD, Tokenizer
from etude.decoding.beam import BeamSearch
from etude.model.encoder_decoder import EncoderDecoder

logger = logging.getLogger(__name__)


class Translator:
    """A model, the subwords it was trained with, and a way to search.

    Args:
        model: translates on the device where it is.
        tokenizer: text to tokens and back.
        search: finds the translation of a batch.
        batch_tokens: source tokens that a batch may hold, padding and end tokens counted; a longer line is alone.
        max_source_tokens: subwords of a line that are read; the rest is cut off, and a warning says how often.
    """

    def __init__(
        self,
        model: EncoderDecoder,
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
        device, training = next(self.model.parameters()).device, self.model.training
        self.model.eval()
        try:
            for rows in self._batches([len(source) for source in sources]):
                tokens = [torch.tensor(sources[row]) for row in rows]
                source = pad_sequence(tokens, batch_first=True, padding_value=PAD).to(device)
                for row, hypotheses in zip(rows, self.search(self.model, source, source != PAD), strict=True):
                    translations[row] = " ".join(self.tokenizer.decode(hypotheses[0].tokens).split())
        finally:
            self.model.train(training)
        return translations

    def translate_stream(self, lines: Iterable[str], *, chunk: int = 512) -> Iterator[str]:
        """As `translate`, but answers after every `chunk` lines, so that endless input can be piped through."""
        rest = iter(lines)
        while block := list(islice(rest, chunk)):
            yield from self.translate(block)

    def _sources(self, lines: Iterable[str]) -> list[list[int]]:
        """Tokens and end token of every line; nothing for a blank one."""
        tokens = self.tokenizer.encode_all(lines)
        most = self.max_source_tokens
        if cut := sum(len(line) > most for line in tokens):
            logger.warning("%d of %d lines had more than %d subwords and were cut", cut, len(tokens), most)
        return [[*line[:most], EOS] if line else [] for line in tokens]

    def _batches(self, lengths: Sequence[int]) -> Iterator[list[int]]:
        """Rows of like length, the longest first, so that a batch too large for the memory shows at once."""
        rows = sorted((row for row, length in enumerate(lengths) if length), key=lambda row: -lengths[row])
        while rows:
            held = max(1, self.batch_tokens // lengths[rows[0]])
            yield rows[:held]
            rows = rows[held:]
