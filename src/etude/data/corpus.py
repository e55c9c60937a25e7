"""What a corpus is: pairs of lines in two languages, in three splits.

A new corpus is one subclass and one file in `conf/data/` that names it and gives its arguments.
"""

import hashlib
import json
from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import Any

Pair = tuple[str, str]
"""A source line and its translation, both stripped, neither holding a line break."""

SPLITS = ("train", "valid", "test")


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


def digest(value: Any) -> str:
    """16 hexadecimal digits that stand for a plain value (numbers, strings, lists, dicts)."""
    canonical = json.dumps(value, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(canonical.encode()).hexdigest()[:16]
