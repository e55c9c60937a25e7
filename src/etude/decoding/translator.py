"""Translate lines of text: tokenise, batch by length, search, detokenise, and restore the order."""

import logging
from collections.abc import Iterable, Iterator, Sequence
from numbers import Integral
from typing import NamedTuple

import torch
from torch.nn.utils.rnn import pad_sequence

from etude.data.tokenizer import EOS, PAD, Tokenizer
from etude.decoding.beam import BeamSearch, Hypothesis
from etude.errors import UserError
from etude.model.encoder_decoder import EncoderDecoder

logger = logging.getLogger(__name__)


class Decoded(NamedTuple):
    """What a search found for a line.

    Attributes:
        source: the tokens of the line as they were read, with the end token; none of a blank line.
        hypotheses: the translations, best first; none of a blank line.
    """

    source: list[int]
    hypotheses: list[Hypothesis]


class Translator:
    """Translates lines of text with a model, its tokenizer and a search.

    Args:
        model: the model, which stays on its device.
        tokenizer: the tokenizer that it was trained with.
        search: decodes a batch.
        batch_tokens: source tokens that a batch may hold, padding and end tokens counted; a line that is longer is a
            batch by itself.
        max_source_tokens: subwords of a line that are read; the rest is cut off, with a warning that counts such lines.
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
        """Translate each line; returns them in the same order, with a blank line for a blank line."""
        return [self.text(found.hypotheses[0]) if found.hypotheses else "" for found in self.decode(lines)]

    def text(self, hypothesis: Hypothesis) -> str:
        """Return a translation as text, with one space between words."""
        return " ".join(self.tokenizer.decode(hypothesis.tokens).split())

    def decode(self, lines: Iterable[str], n_best: int = 1) -> list[Decoded]:
        """Search the `n_best` best translations of each line; returns them in the order of the lines.

        Raises:
            UserError: the search does not keep so many hypotheses.
        """
        beam = getattr(self.search, "beam", 1)  # a user's own search need not have it
        if not isinstance(n_best, Integral):
            raise UserError(f"n_best={n_best!r} must be a whole number")
        if n_best < 1:
            raise UserError(f"n_best={n_best} must be at least 1")
        if n_best > beam:
            kept = "one hypothesis" if beam == 1 else f"{beam} hypotheses"
            raise UserError(
                f"n_best={n_best}, and the search keeps {kept}: raise its beam to {n_best}, or lower n_best"
            )
        more = {"n_best": n_best} if n_best > 1 else {}
        decoded = [Decoded(source, []) for source in self._sources(lines)]
        device, training = next(self.model.parameters()).device, self.model.training
        self.model.eval()
        try:
            for rows in batches_by_length([len(one.source) for one in decoded], self.batch_tokens):
                tokens = [torch.tensor(decoded[row].source) for row in rows]
                source = pad_sequence(tokens, batch_first=True, padding_value=PAD).to(device)
                for row, found in zip(rows, self.search(self.model, source, source != PAD, **more), strict=True):
                    decoded[row].hypotheses.extend(found[:n_best])
        finally:
            self.model.train(training)
        return decoded

    def _sources(self, lines: Iterable[str]) -> list[list[int]]:
        """Tokenise every line and append the end token; a blank line has no tokens."""
        tokens = self.tokenizer.source.encode_all(line if line.strip() else "" for line in lines)
        most = self.max_source_tokens
        if cut := sum(len(line) > most for line in tokens):
            logger.warning("%d of %d lines had more than %d subwords and were cut", cut, len(tokens), most)
        return [[*line[:most], EOS] if line else [] for line in tokens]


def batches_by_length(lengths: Sequence[int], batch_tokens: int) -> Iterator[list[int]]:
    """Batch rows of similar length, the longest first, so that a batch too large for the memory fails at once.

    Args:
        lengths: the tokens of each row; rows of none are left out.
        batch_tokens: tokens that a batch may hold, padding counted; a row that is longer is a batch by itself.
    """
    rows = sorted((row for row, length in enumerate(lengths) if length), key=lambda row: -lengths[row])
    while rows:
        held = max(1, batch_tokens // lengths[rows[0]])
        yield rows[:held]
        rows = rows[held:]
