"""The base classes of text in three splits, and of corpora: pairs of lines in two languages.

A new corpus is a subclass, and a file in `conf/data/` that names it and gives its arguments; so is a new running text
(`etude.data.running_text`).
"""

import hashlib
import json
import logging
import reprlib
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from etude.errors import UserError

logger = logging.getLogger(__name__)

Pair = tuple[str, str]
"""A source line and its translation, both stripped, neither holding a line break.

In "valid" and "test" a translation may be several references, with tabs between them; see `first_reference`.
"""

SPLITS = ("train", "valid", "test")
TRAINING = SPLITS[:2]
"""The splits that trained weights may depend on; on "valid" where a callback selects a checkpoint by it."""


class Text(ABC):
    """Text to train on. Importing or constructing it reads no data and needs no torch."""

    vocab_size: int
    """The recommended size of the shared vocabulary; `conf/tokenizer/` reads it as `${data.vocab_size}`."""

    @abstractmethod
    def fingerprint(self) -> str:
        """Return 16 hexadecimal digits that change exactly when the text of any split changes.

        Raises:
            UserError: files that must be read to compute it are missing.
        """

    def training_fingerprint(self) -> str:
        """Return the fingerprint of "train" and "valid" alone: runs that differ only in test text share a training.

        By default it is the fingerprint of all splits.
        """
        return self.fingerprint()

    def fetch(self) -> None:  # noqa: B027 - most corpora have nothing to fetch
        """Make the text available on this machine, for example by downloading it; a second call does nothing.

        Raises:
            UserError: the text cannot be obtained; the message says how to proceed.
        """

    def source_counts(self) -> dict[str, dict[str, int]]:
        """Count, per source, the training pairs kept ("pairs") and those that each cleaning rule left out.

        The counts are complete once all pairs were read. Corpora of one source that filter nothing return {}.
        """
        return {}


class Corpus(Text):
    """Parallel text: pairs of lines."""

    languages: tuple[str, str]
    """The language codes of source and target, such as `("en", "de")`."""

    @abstractmethod
    def pairs(self, split: str) -> Iterator[Pair]:
        """Yield the pairs of `split` ("train", "valid" or "test"), always in the same order; blank lines are kept.

        Raises:
            UserError: the text is missing or broken; the message names file and line.
        """


class SplitCorpus(Corpus):
    """A corpus whose fingerprint is computed from some of its splits, without those that are not asked for."""

    @abstractmethod
    def fingerprint_of(self, splits: Sequence[str]) -> str:
        """Return the fingerprint of the text of some splits."""

    def fingerprint(self) -> str:
        """Return the fingerprint of all splits."""
        return self.fingerprint_of(SPLITS)

    def training_fingerprint(self) -> str:
        """Return the fingerprint without the test text."""
        return self.fingerprint_of(TRAINING)


def read_pairs(corpus: Corpus, split: str) -> Iterator[Pair]:
    """Yield the pairs of `split` and check each of them, since a corpus may be anybody's class.

    Raises:
        UserError: from the corpus; or a pair is not two strings, or has a line break in it; the message says which one.
    """
    whose = f"data: {type(corpus).__module__}.{type(corpus).__qualname__}.pairs({split!r})"
    pairs = corpus.pairs(split)
    if not isinstance(pairs, Iterable):
        raise UserError(f"{whose} returns {pairs!r}, and not pairs of strings; `yield source, target` for each of them")
    for number, pair in enumerate(pairs, start=1):
        if not (isinstance(pair, tuple | list) and [isinstance(side, str) for side in pair] == [True, True]):
            raise UserError(
                f"{whose} yields {reprlib.repr(pair)} as pair {number}, and not two strings, source and target"
            )
        source, target = pair
        if "\n" in source or "\n" in target or "\r" in source or "\r" in target:
            raise UserError(
                f"{whose} yields {reprlib.repr(pair)} as pair {number}: the line break in it would shift all lines "
                "behind it; strip the line, or put a space in its place"
            )
        try:
            f"{source}{target}".encode()
        except UnicodeEncodeError as error:
            raise UserError(
                f"{whose} yields {reprlib.repr(pair)} as pair {number}, which is no text ({error.reason}): read it "
                "as UTF-8, or leave such characters out"
            ) from error
        yield source, target


def first_reference(target: str) -> str:
    """Return the first of the references of a line, which a model is trained and its perplexity is computed on."""
    return target.partition("\t")[0]


def first_pair(corpus: Corpus) -> Pair:
    """Return the first training pair without a blank side; raises as `read_pairs`."""
    return next(filter(all, read_pairs(corpus, "train")))


def warn_of_repeated(corpus: Corpus, splits: Iterable[str]) -> None:
    """Log how many pairs of some splits, "valid" or "test", are pairs of the training text too."""
    held_out = {
        split: [(source, first_reference(target)) for source, target in corpus.pairs(split) if source and target]
        for split in splits
    }
    asked = {pair for pairs in held_out.values() for pair in pairs}
    seen = asked.intersection(corpus.pairs("train")) if asked else asked
    for split, pairs in held_out.items():
        if repeated := sum(pair in seen for pair in pairs):
            logger.warning(
                "%d of %d lines of the %s text are lines of the training text too, source and target alike: "
                "what a model has seen tells little about what it can do",
                *(repeated, len(pairs), split),
            )


def two_languages(languages: Sequence[str]) -> tuple[str, str]:
    """Return the language codes of source and target from `data.languages`.

    Raises:
        UserError: it does not name exactly two.
    """
    if len(languages) != 2:
        raise UserError(f"data.languages={list(languages)} must name two, source and target, such as [en,de]")
    return languages[0], languages[1]


def require_test_set(key: str, name: str, known: Iterable[str]) -> None:
    """Check that a corpus has the test set that `data.<key>` names.

    Raises:
        UserError: it does not; the message lists the known ones.
    """
    if name not in (names := list(known)):
        raise UserError(f"data.{key}={name}: this corpus has no such test set; there are {', '.join(names)}")


def digest(value: Any) -> str:
    """Hash a plain value (numbers, strings, lists, dicts) to 16 hexadecimal digits."""
    canonical = json.dumps(value, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(canonical.encode()).hexdigest()[:16]
