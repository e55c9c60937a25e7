"""What a corpus yields is checked, whoever wrote it."""

from collections.abc import Iterator
from typing import Any

import pytest

from etude.data.corpus import Corpus, read_pairs
from etude.errors import UserError


class Given(Corpus):
    """Whatever is given, three times a pair that is one before it."""

    languages, vocab_size = ("en", "xx"), 60

    def __init__(self, given: Any) -> None:
        self.given = given

    def fingerprint(self) -> str:
        return "0" * 16

    def pairs(self, split: str) -> Iterator[Any]:
        yield from [("a", "b"), ["", "b"], ("a c", "\u2028")]
        yield self.given


class Nothing(Given):
    """Has forgotten to yield."""

    def pairs(self, split: str) -> Any:
        return None


@pytest.mark.parametrize(
    "pair", [("a", "b", "c"), ("a",), "ab", ["a", None], (b"a", b"b"), {"en": "a", "xx": "b"}, None]
)
def test_what_is_not_two_strings_is_refused_with_the_class_and_the_place(pair: Any) -> None:
    with pytest.raises(UserError, match=r"Given\.pairs\('valid'\) yields .* as pair 4, and not two strings"):
        list(read_pairs(Given(pair), "valid"))


@pytest.mark.parametrize("line", ["a\nb", "a\r", "\r\n"])
@pytest.mark.parametrize("side", [0, 1])
def test_a_line_break_which_would_shift_the_references_is_refused(line: str, side: int) -> None:
    pair = ("a", line) if side else (line, "a")
    with pytest.raises(UserError, match=r"as pair 4: the line break in it would shift all lines behind it"):
        list(read_pairs(Given(pair), "test"))


def test_what_cannot_be_written_is_refused_before_a_vocabulary_is_learned_of_it() -> None:
    with pytest.raises(UserError, match=r"as pair 4, which is no text \(surrogates not allowed\)"):
        list(read_pairs(Given(("a", "b\ud800")), "train"))


def test_a_corpus_that_returns_nothing_is_told_to_yield() -> None:
    with pytest.raises(UserError, match=r"Nothing\.pairs\('train'\) returns None, .*`yield source, target`"):
        list(read_pairs(Nothing(None), "train"))


def test_pairs_pass_as_they_are() -> None:
    assert list(read_pairs(Given(("d", "e")), "train")) == [("a", "b"), ("", "b"), ("a c", "\u2028"), ("d", "e")]
