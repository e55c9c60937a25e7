"""The base class of running text: documents in three splits, cut into pieces that are tokenised one by one.

A new text is a subclass, and a file in `conf/data/` that names it and gives its arguments.
"""

import re
from abc import abstractmethod
from collections.abc import Iterable, Iterator, Sequence

from etude.data.corpus import SPLITS, TRAINING, Text, digest
from etude.errors import UserError

PIECE = 4000
"""The least characters of a piece of a longer document; sentencepiece takes half as long again for one of 65,000."""

_BETWEEN_WORDS = re.compile(r"(?<=\w) (?=\w)")
_WAYS = ("cross", "mask")


class RunningText(Text):
    """Documents, which a model reads in contexts of `budget.context` tokens.

    Args:
        documents: "cross": a context goes on from one document to the next; "mask": it ends with its document.
        stride: how many tokens the contexts of "valid" and "test" are apart; None: none of them overlaps another.
    """

    def __init__(self, *, documents: str, stride: int | None) -> None:
        if documents not in _WAYS:
            raise ValueError(f"data.documents={documents}: say {' or '.join(_WAYS)}")
        if stride is not None and stride < 1:
            raise ValueError(f"data.stride must be at least 1, or null, not {stride}")
        self.documents, self.stride = documents, stride

    @abstractmethod
    def texts(self, split: str) -> Iterator[Iterable[str]]:
        """Yield the documents of `split`, always in the same order, each as its parts, one after the other.

        Raises:
            UserError: the text is missing or broken; the message names the file and the place in it.
        """

    @abstractmethod
    def text_fingerprint(self, splits: Sequence[str] = SPLITS) -> str:
        """Return 16 hexadecimal digits that change exactly when the text of one of the splits changes.

        Raises:
            UserError: files that must be read to compute it are missing.
        """

    def size(self, split: str) -> int | None:
        """Return the bytes of a split; None if it is not known before it has been read."""
        return None

    def fingerprint(self) -> str:
        """Return the fingerprint of the text and of how contexts are made of it."""
        return self.of_contexts(self.text_fingerprint())

    def training_fingerprint(self) -> str:
        """Return the same without the test text."""
        return self.of_contexts(self.text_fingerprint(TRAINING))

    def of_contexts(self, text: str) -> str:
        """Return the fingerprint of the contexts that are made of the text with the fingerprint `text`."""
        return digest([text, self.documents, self.stride])


def read_pieces(text: RunningText, split: str) -> Iterator[tuple[str, bool]]:
    """Yield the pieces of all documents of a split, each with whether its document ends there; blank ones are left out.

    Raises:
        UserError: from the text; or a document is none.
    """
    whose = f"data: {type(text).__module__}.{type(text).__qualname__}.texts({split!r})"
    for document in text.texts(split):
        last, begun = "", False
        for piece in cut([document] if isinstance(document, str) else document, whose):
            if begun or last.strip():
                yield last, False
                last, begun = piece, True
            else:  # white space alone is no piece
                last += piece
        if begun or last.strip():
            yield last, True


def cut(parts: Iterable[str], whose: str = "", size: int = PIECE) -> Iterator[str]:
    """Cut a document into pieces of `size` to twice `size` characters; the last may be shorter.

    A piece ends between two words, where there is a space between letters: no tokenizer joins what stands on either
    side. Where pieces end depends on the document alone, and not on its parts.

    Raises:
        UserError: a part is no text.
    """
    rest = ""
    for part in parts:
        if not isinstance(part, str):
            raise UserError(f"{whose} yields a document with {part!r} in it: yield strings, or lists of strings")
        rest, start = rest + part, 0
        while len(rest) - start > 2 * size:
            found = _BETWEEN_WORDS.search(rest, start + size, start + 2 * size)
            end = found.start() if found else start + 2 * size
            yield rest[start:end]
            start = end
        rest = rest[start:]
    if rest:
        yield rest
