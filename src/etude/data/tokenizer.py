"""Learn a shared subword vocabulary, and convert text to tokens and back (paper, section 5.1).

Subwords are learned from the text of both languages together, so that one embedding matrix serves both (section 3.4).
White space of any kind and length counts as one space. Otherwise the text is not normalised
(`normalization: identity`): a normalised target side, with its ligatures and full-width letters replaced, could never
reproduce the reference that BLEU compares it with.
"""

import io
import re
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from etude.errors import UserError, did_you_mean

PAD, BOS, EOS, UNK = 0, 1, 2, 3

MODEL_TYPES = ("bpe", "unigram", "char", "word")
IDENTITY = "identity"
NORMALIZATIONS = (IDENTITY, "nfkc", "nfkc_cf", "nmt_nfkc", "nmt_nfkc_cf")


@dataclass(frozen=True, kw_only=True)
class Vocabulary(ABC):
    """The options of a tokenizer: how its vocabulary is learned from a text, or where it comes from."""

    vocab_size: int  # tokens in all, PAD, BOS, EOS and UNK included
    input_sentence_size: int | None = None  # learn from at most so many sentences; None: all

    def further_options(self) -> dict[str, Any]:
        """Return what decides on the tokens, beyond the fields."""
        return {}

    @abstractmethod
    def train(self, text: Iterable[str], *, keep_spaces: bool = False) -> bytes:
        """Learn the vocabulary from the lines of `text`; the same text gives the same bytes.

        Args:
            text: lines.
            keep_spaces: whether white space counts as it is, and the end of a line is a token: for running text.

        Returns:
            the content of a file that `open_tokenizer` reads

        Raises:
            UserError: the text is not enough, or does not suit it.
        """


@dataclass(frozen=True, kw_only=True)
class SentencePiece(Vocabulary):
    """The options for learning a vocabulary with sentencepiece (Kudo and Richardson 2018)."""

    model_type: str  # "bpe" (Sennrich et al. 2016), "unigram" (Kudo 2018), "char" or "word"
    hard_vocab_limit: bool  # whether the text must fill the vocabulary; else it may have fewer subwords
    character_coverage: float  # the share of all characters that get a subword of their own; the rest becomes UNK
    normalization: str  # sentencepiece's name of the normalisation rule
    shared: bool = True  # one vocabulary for both sides of pairs; else one of each

    def further_options(self) -> dict[str, Any]:
        """Return further keyword arguments for sentencepiece's trainer, beyond the fields."""
        return {}

    def train(self, text: Iterable[str], *, keep_spaces: bool = False) -> bytes:
        """Learn the subwords of `text`; see `Vocabulary`.

        Returns:
            the serialised sentencepiece model

        Raises:
            UserError: the text cannot fill the vocabulary, or its characters alone need a larger one.
        """
        import sentencepiece

        if keep_spaces and self.model_type == "word":
            raise UserError("tokenizer=word cannot give back running text with its spaces: say tokenizer=bpe or char")
        for key, known in {"model_type": MODEL_TYPES, "normalization": NORMALIZATIONS}.items():
            if (given := getattr(self, key)) not in known:
                raise UserError(f"tokenizer.{key}={given} is unknown: {did_you_mean(given, known)}")
        model = io.BytesIO()
        failures: list[BaseException] = []
        try:
            sentencepiece.SentencePieceTrainer.train(
                sentence_iterator=_keep_failures(text, failures, keep_spaces),
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
                **(_AS_IT_IS if keep_spaces else {}),
                max_sentence_length=1_000_000,  # bytes; sentencepiece skips longer ones silently
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
                f"{size} is more than this text can fill: it has {most[1]} subwords; "
                f"set tokenizer.vocab_size to at most {most[1]}, or tokenizer.hard_vocab_limit=false, or give more text"
            )
        if least := re.search(r"smaller than required_chars. \d+ vs (\d+)", message):
            return UserError(
                f"{size} is too small for the characters of this text: set tokenizer.vocab_size to at least "
                f"{least[1]}, or lower tokenizer.character_coverage"
            )
        if "sentences_.empty()" in message:
            return UserError(
                "the training text is empty: `data` must yield pairs of its split train with words in both"
            )
        return UserError(f"no vocabulary can be learned from this text: sentencepiece says {message!r}")


class MixedPieces(SentencePiece):
    """`SentencePiece` whose subwords may join letters and other characters, such as `(NP`, a bracket and its label."""

    def further_options(self) -> dict[str, Any]:
        """Let subwords cross Unicode scripts; only word boundaries separate them."""
        return {"split_by_unicode_script": False}


_LINE_END = "\n"
_AS_IT_IS: dict[str, Any] = {
    "remove_extra_whitespaces": False,
    "add_dummy_prefix": False,
    "user_defined_symbols": [_LINE_END],
}
"""Options of sentencepiece for running text; lines of pairs have no such subword, by which it is known again."""


class Tokenizer:
    """A learned vocabulary that converts text to tokens and back: one of sentencepiece."""

    def __init__(self, model_file: Path, content: bytes | None = None) -> None:
        """Load a sentencepiece model.

        Args:
            model_file: the file of the tokenizer.
            content: the model, if the file holds more than that.

        Raises:
            UserError: the file is missing or not a sentencepiece model.
        """
        import sentencepiece

        self.model_file = model_file
        self._processor = sentencepiece.SentencePieceProcessor()
        try:
            self._processor.LoadFromSerializedProto(model_file.read_bytes() if content is None else content)
        except FileNotFoundError as error:
            raise UserError(
                f"{model_file} is missing: prepare the data again or, if it was a run's, delete the run and train again"
            ) from error
        except (OSError, RuntimeError) as error:
            raise UserError(f"{model_file} is not a tokenizer model ({error}); prepare the data again") from error
        self._keeps_spaces = self._processor.piece_to_id(_LINE_END) != UNK

    @property
    def source(self) -> "Tokenizer":
        """The vocabulary of source lines."""
        return self

    @property
    def target(self) -> "Tokenizer":
        """The vocabulary of target lines, which all other methods are of."""
        return self

    def __len__(self) -> int:
        """The vocabulary size V, including the four special tokens."""
        return self._processor.get_piece_size()

    def serialized(self) -> bytes:
        """Return the model of sentencepiece, of target lines if there are two."""
        return self._processor.serialized_model_proto()

    def encode(self, text: str) -> list[int]:
        """Convert one line to tokens, without BOS and EOS; a blank line gives an empty list."""
        return self._processor.encode(self._spaced(text))

    def encode_all(self, lines: Iterable[str]) -> list[list[int]]:
        """Convert many lines to tokens, faster than one by one: with a thread per core."""
        return self._processor.encode([self._spaced(line) for line in lines], num_threads=-1)

    def unknown(self, text: str) -> str:
        """Return the characters of one line that became UNK."""
        cut = zip(self.encode(text), self.pieces(text), strict=True)
        return "".join(piece for token, piece in cut if token == UNK).replace("▁", "")

    def pieces(self, text: str) -> list[str]:
        """Return what each token of one line stands for, UNK too, with `▁` for the space before a word."""
        return self._processor.encode(self._spaced(text), out_type=str)

    def subwords(self, tokens: Sequence[int]) -> list[str]:
        """Convert tokens to their strings in the vocabulary, with `▁` for the space before a word."""
        return [self._processor.id_to_piece(token) for token in self._replace_unknown(tokens)]

    def decode(self, tokens: Sequence[int]) -> str:
        """Convert tokens to text; PAD, BOS and EOS become nothing, UNK and numbers beyond the vocabulary " ⁇ "."""
        return self._processor.decode(self._replace_unknown(tokens))

    def _replace_unknown(self, tokens: Sequence[int]) -> list[int]:
        """Replace tokens beyond the vocabulary by UNK.

        A model may have more rows than there are subwords (`model.vocabulary`), and an untrained one may generate one.
        """
        return [int(token) if token < self._processor.get_piece_size() else UNK for token in tokens]

    def _spaced(self, text: str) -> str:
        return text if self._keeps_spaces else _normalize_spaces(text)


def _normalize_spaces(text: str) -> str:
    return " ".join(text.split())


_SKIPPED = "\u2585"  # sentencepiece leaves out lines that contain this character, silently


def _keep_failures(text: Iterable[str], failures: list[BaseException], keep_spaces: bool) -> Iterator[str]:
    """Yield the lines of `text` and record its exception, an interrupt too, which sentencepiece would mask."""
    try:
        for line in text:
            line = line.replace(_SKIPPED, " ")
            yield line if keep_spaces else _normalize_spaces(line)
    except BaseException as error:
        failures.append(error)
        raise
