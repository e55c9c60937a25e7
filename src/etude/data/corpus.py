"""What a corpus is: pairs of lines in two languages, in three splits.

A new corpus is one subclass and one file in `conf/data/` that names it and gives its arguments.
"""

import hashlib
import json
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from etude.errors import UserError

Pair = tuple[str, str]
"""A source line and its translation, both stripped, neither holding a line break."""

SPLITS = ("train", "valid", "test")
TRAINING = SPLITS[:2]
"""What weights may depend on; on "valid" where a callback chooses by it."""


class Corpus(ABC):
    """Text to learn from. Importing or making one reads no data and needs no torch."""

    languages: tuple[str, str]
    """The codes of source and target, `("en", "de")`."""

    vocab_size: int
    """The size of the shared vocabulary that suits the text; `conf/tokenizer/` reads it as `${data.vocab_size}`."""

    @abstractmethod
    def fingerprint(self) -> str:
        """16 hexadecimal digits that change exactly when the text of any split changes.

        Raises:
            UserError: files that have to be read for it are missing.
        """

    def training_fingerprint(self) -> str:
        """The same of the text of "train" and "valid": runs that differ in their test text alone share a training.

        Of a corpus that does not tell these apart it is that of all.
        """
        return self.fingerprint()

    def fetch(self) -> None:  # noqa: B027 - most corpora have nothing to fetch
        """Make the text available on this machine (a download, say); done again, it does nothing.

        Raises:
            UserError: the text cannot be had; the sentence says how to go on.
        """

    @abstractmethod
    def pairs(self, split: str) -> Iterator[Pair]:
        """The pairs of `split` ("train", "valid" or "test"), always in the same order; blank lines are kept.

        Raises:
            UserError: the text is missing or broken; the sentence names file and line.
        """

    def source_counts(self) -> dict[str, dict[str, int]]:
        """How many training pairs each source gave ("pairs") and each rule of cleaning left out, once all were read.

        Most corpora have one source, leave nothing out, and say nothing.
        """
        return {}


def two_languages(languages: Sequence[str]) -> tuple[str, str]:
    """The codes of source and target that `data.languages` names.

    Raises:
        UserError: there are more or fewer.
    """
    if len(languages) != 2:
        raise UserError(f"data.languages={list(languages)} must name two, source and target, such as [en,de]")
    return languages[0], languages[1]


def require_test_set(key: str, name: str, known: Iterable[str]) -> None:
    """See to it that a corpus has the test set that `data.<key>` names.

    Raises:
        UserError: it has not; the sentence names those that there are.
    """
    if name not in (names := list(known)):
        raise UserError(f"data.{key}={name}: this corpus has no such test set; there are {', '.join(names)}")


def digest(value: Any) -> str:
    """16 hexadecimal digits that stand for a plain value (numbers, strings, lists, dicts)."""
    canonical = json.dumps(value, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(canonical.encode()).hexdigest()[:16]
