"""Subwords: learning a shared vocabulary, and turning text into tokens and back (paper, section 5.1).

Pieces are learned from the text of both languages together, so that one embedding matrix serves both (section 3.4).
White space of any kind and length counts as one space. Beyond that the text is taken as it is written
(`normalization: identity`): a normalised target side, with its ligatures and full-width letters replaced, could never
reproduce the reference that BLEU compares it with.
"""

import io
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from etude.errors import UserError, did_you_mean

PAD, BOS, EOS, UNK = 0, 1, 2, 3

MODEL_TYPES = ("bpe", "unigram", "char", "word")
NORMALIZATIONS = ("identity", "nfkc", "nfkc_cf", "nmt_nfkc", "nmt_nfkc_cf")


@dataclass(frozen=True, kw_only=True)
class SentencePiece:
    """How to learn a vocabulary with sentencepiece (Kudo and Richardson 2018)."""

    model_type: str  # "bpe" (Sennrich et al. 2016), "unigram" (Kudo 2018), "char" or "word"
    vocab_size: int  # subwords in all, PAD, BOS, EOS and UNK included
    hard_vocab_limit: bool  # whether the text must fill the vocabulary; else it may have fewer
    character_coverage: float  # the share of all characters that get a piece of their own; the rest becomes UNK
    normalization: str  # sentencepiece's name for what is done to the text first
    input_sentence_size: int | None = None  # learn from so many sentences at most; None (and configs of before): all

    def further_options(self) -> dict[str, Any]:
        """What else sentencepiece is told, beyond the fields."""
        return {}

    def train(self, text: Iterable[str]) -> bytes:
        """Learn the subwords of `text`; the same text gives the same bytes.

        Returns:
            the sentencepiece model, as it is written to a file

        Raises:
            UserError: the text cannot fill the vocabulary, or needs a larger one for its characters alone.
        """
        import sentencepiece

        for key, known in {"model_type": MODEL_TYPES, "normalization": NORMALIZATIONS}.items():
            if (given := getattr(self, key)) not in known:
                raise UserError(f"tokenizer.{key}={given} is unknown: {did_you_mean(given, known)}")
        model = io.BytesIO()
        failures: list[Exception] = []
        try:
            sentencepiece.SentencePieceTrainer.train(
                sentence_iterator=_keep_failures(text, failures),
                model_writer=model,
                model_type=self.model_type,
                vocab_size=self.vocab_size,
                hard_vocab_limit=self.hard_vocab_limit,
                character_coverage=self.character_coverage,
                normalization_rule_name=self.normalization,
                pad_id=PAD,
                bos_id=BOS,
                eos_id=EOS,
                unk_id=UNK,
                num_threads=1,  # more make the order of merges, and so the bytes, depend on chance
                **self.further_options(),
                max_sentence_length=1_000_000,  # bytes; sentencepiece skips longer ones without a word
                minloglevel=2,
            )
        except RuntimeError as error:
            if not failures:
                raise self._explain(str(error)) from error
        if failures:
            raise failures[0]
        return model.getvalue()

    def _explain(self, message: str) -> UserError:
        size = f"tokenizer.vocab_size={self.vocab_size}"
        if most := re.search(r"size too high.*<= (\d+)", message):
            return UserError(
                f"{size} is more than this text can fill: it has {most[1]} pieces; "
                f"set tokenizer.vocab_size to at most {most[1]}, or tokenizer.hard_vocab_limit=false, or give more text"
            )
        if least := re.search(r"smaller than required_chars. \d+ vs (\d+)", message):
            return UserError(
                f"{size} is too small for the characters of this text: set tokenizer.vocab_size to at least "
                f"{least[1]}, or lower tokenizer.character_coverage"
            )
        return UserError(
            f"no vocabulary can be learned from this text (is every pair blank?): sentencepiece says {message!r}"
        )


class MixedPieces(SentencePiece):
    """The same, where a piece may join letters and other characters: a bracket and its label, `(NP`, can be one."""

    def further_options(self) -> dict[str, Any]:
        """Only words are kept apart."""
        return {"split_by_unicode_script": False}


class Tokenizer:
    """A learned vocabulary: text to tokens and back."""

    def __init__(self, model_file: Path) -> None:
        """Load a sentencepiece model.

        Raises:
            UserError: the file is missing or is no such model.
        """
        import sentencepiece

        self.model_file = model_file
        self._processor = sentencepiece.SentencePieceProcessor()
        try:
            self._processor.LoadFromSerializedProto(model_file.read_bytes())
        except (OSError, RuntimeError) as error:
            raise UserError(f"{model_file} is not a tokenizer model ({error}); prepare the data again") from error

    def __len__(self) -> int:
        """The number of subwords, V, the four special ones included."""
        return self._processor.get_piece_size()

    def encode(self, text: str) -> list[int]:
        """The tokens of one line, without BOS and EOS; an empty list for a blank one."""
        return self._processor.encode(_normalize_spaces(text))

    def encode_all(self, lines: Iterable[str], threads: int = -1) -> list[list[int]]:
        """The tokens of many lines, faster than one by one; with so many threads, or one a core."""
        return self._processor.encode([_normalize_spaces(line) for line in lines], num_threads=threads)

    def pieces(self, tokens: Sequence[int]) -> list[str]:
        """The tokens as they are written in the vocabulary, `▁` for the space before a word."""
        return [self._processor.id_to_piece(token) for token in self._replace_unknown(tokens)]

    def decode(self, tokens: Sequence[int]) -> str:
        """The text of some tokens; PAD, BOS and EOS are nothing, UNK and numbers past the last one are " ⁇ "."""
        return self._processor.decode(self._replace_unknown(tokens))

    def _replace_unknown(self, tokens: Sequence[int]) -> list[int]:
        """UNK for each that is past the vocabulary.

        A model may have more rows than there are subwords (`model.vocabulary`) and say one before it knows better.
        """
        return [int(token) if token < len(self) else UNK for token in tokens]


def _normalize_spaces(text: str) -> str:
    return " ".join(text.split())


def _keep_failures(text: Iterable[str], failures: list[Exception]) -> Iterator[str]:
    """`text`, keeping what goes wrong in it: sentencepiece would report it as its own error, or not at all."""
    try:
        for line in text:
            yield _normalize_spaces(line)
    except Exception as error:
        failures.append(error)
