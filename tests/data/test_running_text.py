"""Running text: what its documents are, where they are cut, and what is said of files that are no text."""

import gzip
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from etude.data.corpus import SPLITS, digest
from etude.data.running_files import TextFiles, divide, read_part
from etude.data.running_text import RunningText, cut, read_pieces
from etude.errors import UserError

SENTENCES = {"train": 40, "valid": 5, "test": 5}
texts = st.text(st.sampled_from("abä \n字🙂"), max_size=60)
sizes = st.lists(st.integers(0, 9), min_size=1)


def files(place: Any = None, **options: Any) -> TextFiles:
    given: dict[str, Any] = {"files": place, "valid": [0.5, 0.75], "test": [0.75, 1.0], "separator": None, "seed": 1}
    given |= {"documents": "cross", "stride": None, "sentences": SENTENCES, "vocab_size": 300}
    return TextFiles(**given | {"input_sentence_size": None} | options)


def documents(text: RunningText, split: str) -> list[str]:
    return ["".join(document) for document in text.texts(split)]


def in_parts(text: str, sizes: Sequence[int]) -> Iterator[str]:
    start = 0
    for size in sizes:
        yield text[start : start + size]
        start += size
    yield text[start:]


@given(text=texts, sizes=sizes)
def test_where_a_document_is_cut_depends_on_its_text_and_not_on_how_it_was_read(text: str, sizes: list[int]) -> None:
    pieces = list(cut(in_parts(text, sizes), size=8))
    assert "".join(pieces) == text
    assert pieces == list(cut([text], size=8))
    assert all(8 <= len(piece) <= 16 for piece in pieces[:-1])


def test_a_document_is_cut_between_words_where_it_has_any() -> None:
    pieces = list(cut(["one two, three four "] * 9, size=12))
    assert all(piece.startswith(" ") for piece in pieces[1:])
    assert all(piece[-1].isalpha() for piece in pieces[:-1])


@settings(max_examples=60, deadline=None)
@given(documents=st.lists(st.text(st.sampled_from("a \n"), max_size=10), max_size=4))
def test_every_document_with_words_ends_once_and_is_whole(documents: list[str]) -> None:
    long = [document.replace("\n", "\n" * 5000).replace("a", "a" * 3000) for document in documents]
    found, so_far = list[str](), ""
    for piece, ends in read_pieces(Own(*long), "train"):
        so_far += piece
        if ends:
            found, so_far = [*found, so_far], ""
    assert not so_far
    assert found == [document for document in long if document.strip()]


@pytest.mark.parametrize("typed", ["\n\n", r"\n\n"], ids=["in a file", "on a command line"])
def test_a_separator_may_be_typed(typed: str, tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("one\n\ntwo\n\nthree")
    text = files(str(tmp_path / "a.txt"), valid="x", test="y", separator=typed)
    assert documents(text, "train") == ["one", "two", "three"]


@given(text=texts, sizes=sizes, separator=st.sampled_from(["\n", "ab", "aa", "\n\n"]))
def test_documents_are_what_stands_between_separators(text: str, sizes: list[int], separator: str) -> None:
    found = ["".join(parts) for parts in divide(in_parts(text, sizes), separator)]
    assert found == text.split(separator)


@settings(max_examples=80)
@example(text="字字a\r\n字b", borders=[0.08, 0.62])  # within a character, and between \r and \n
@given(
    text=st.text(st.sampled_from("ab\r\n字"), min_size=1, max_size=40),
    borders=st.lists(st.floats(0, 1), min_size=2, max_size=2),
)
def test_every_character_belongs_to_one_part_of_a_file_and_lines_end_as_they_do_elsewhere(
    tmp_path_factory: pytest.TempPathFactory, text: str, borders: list[float]
) -> None:
    file = tmp_path_factory.mktemp("text") / "a.txt"
    file.write_bytes(text.encode())
    size = len(text.encode())
    ends = [0, *(int(size * share) for share in sorted(borders)), size]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("etude.data.running_files._BLOCK", 3)
        parts = ["".join(read_part(file, *span)) for span in pairwise(ends) if span[0] < span[1]]
    assert "".join(parts) == text.replace("\r\n", "\n")


def test_what_is_held_out_is_not_trained_on(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("0123456789")
    (tmp_path / "b.txt").write_text("abcdefghij")
    text = files([str(tmp_path / "a.txt"), str(tmp_path / "b.txt")], valid=[0.2, 0.3], test=[0.4, 0.6])
    found = {split: documents(text, split) for split in SPLITS}
    assert found == {"train": ["0123", "67", "cdefghij"], "valid": ["45"], "test": ["89", "ab"]}
    assert [text.size(split) for split in SPLITS] == [14, 2, 4]


def test_a_folder_holds_a_document_in_each_file_and_a_split_may_have_files_of_its_own(tmp_path: Path) -> None:
    (tmp_path / "deep").mkdir()
    (tmp_path / ".hidden").write_text("no")
    (tmp_path / "b.txt").write_text("second\n")
    (tmp_path / "deep" / "c.md.gz").write_bytes(gzip.compress("dritt\ufeffe".encode()))
    (tmp_path / "a.txt").write_bytes("\ufefferste".encode())
    text = files(str(tmp_path), valid=str(tmp_path / "b.txt"), test=[0.5, 1])
    assert documents(text, "valid") == ["second\n"]
    assert documents(files(str(tmp_path), valid="x", test="y"), "train") == ["erste", "second\n", "dritt\ufeffe"]


def test_files_that_are_held_out_are_not_trained_on_where_they_lie_in_the_same_folder(tmp_path: Path) -> None:
    (tmp_path / "deep").mkdir()
    for name in SPLITS:
        (tmp_path / f"{name}.txt").write_text(f"the text of {name}")
    text = files(str(tmp_path), valid=str(tmp_path / "valid.txt"), test=[f"{tmp_path}/deep/../test.txt"])
    assert {split: documents(text, split) for split in SPLITS} == {split: [f"the text of {split}"] for split in SPLITS}
    with pytest.raises(
        UserError, match=r"data\.valid and data\.test hold all of it out: name further files to train on"
    ):
        documents(files(str(tmp_path / "test.txt"), valid=str(tmp_path), test=[0.5, 1]), "train")


def test_documents_of_the_grammar_are_the_same_each_time_and_each_sentence_is_in_one_split() -> None:
    found = {split: documents(files(), split) for split in SPLITS}
    assert found == {split: documents(files(), split) for split in SPLITS}
    assert all(sum(one.count(".") + one.count("?") for one in found[split]) == SENTENCES[split] for split in SPLITS)
    assert len(found["train"]) > 3


def test_the_fingerprint_follows_the_text_and_what_is_made_of_it_and_not_the_place(tmp_path: Path) -> None:
    def written(name: str, content: str, **options: Any) -> TextFiles:
        (tmp_path / name).write_text(content)
        return files(str(tmp_path / name), **options)

    base = written("a", "one two")
    assert base.fingerprint() == written("b", "one two").fingerprint()
    others = [
        written("c", "one two."),
        written("d", "one\ntwo"),
        written("e", "one\r\ntwo"),  # where it is divided is counted in its own bytes
        written("a", "one two", separator="."),
        written("a", "one two", valid=[0.1, 0.2]),
        written("a", "one two", documents="mask"),
        written("a", "one two", stride=4),
        files(),
        files(seed=2),
    ]
    assert len({text.fingerprint() for text in [base, *others]}) == 1 + len(others)
    assert base.text_fingerprint() == written("a", "one two", documents="mask", stride=3).text_fingerprint()
    apart = written("a", "one two", valid=str(tmp_path / "b"), test=str(tmp_path / "b"))
    other = written("a", "one two", valid=str(tmp_path / "b"), test=str(tmp_path / "c"))
    assert apart.training_fingerprint() == other.training_fingerprint()
    assert apart.fingerprint() != other.fingerprint()


@pytest.mark.parametrize(
    ("content", "told"),
    [
        (b"", "a.txt is empty: give a file of text"),
        (b"text\xff\xfe", "a.txt: byte 0xff at offset 4 is not UTF-8"),
        ("ää".encode() + b"\0", "a.txt: byte 0x00 at offset 4 is not UTF-8"),
        ("ä".encode() * 600_000 + b"\xe2\x82", "a.txt: byte 0xe2 at offset 1200000 is not UTF-8"),
    ],
)
def test_a_file_that_is_no_text_is_named_with_the_place_in_it(content: bytes, told: str, tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_bytes(content)
    text = files(str(tmp_path / "a.txt"), valid="v", test="t")
    with pytest.raises(UserError, match=told):
        documents(text, "train")


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"documents": "masked"}, "data.documents=masked: say cross or mask"),
        ({"stride": 0}, "data.stride must be at least 1"),
        ({"valid": [0.9, 0.8]}, r"data.valid=\[0.9, 0.8\]: name files, or say"),
        ({"valid": [0.7, 1.0]}, r"data.valid=\[0.7, 1.0\] and data.test=\[0.75, 1.0\] overlap"),
        ({"separator": ""}, "data.separator is empty"),
    ],
)
def test_values_that_no_text_can_have_are_refused(options: dict[str, Any], told: str) -> None:
    with pytest.raises(ValueError, match=told):
        files(**options)


def test_what_names_no_file_is_refused(tmp_path: Path) -> None:
    for place, told in (
        (str(tmp_path / "no"), "there is no file"),
        (str(tmp_path), "no file in the folder"),
        ([], "must"),
    ):
        with pytest.raises(UserError, match=told):
            documents(files(place, valid="v", test="t"), "train")


class Own(RunningText):
    """Somebody's own text."""

    vocab_size = 10

    def __init__(self, *documents: Any) -> None:
        super().__init__(documents="cross", stride=None)
        self.own = documents

    def text_fingerprint(self, splits: Sequence[str] = SPLITS) -> str:
        return digest([list(self.own), list(splits)])

    def texts(self, split: str) -> Iterator[Iterable[str]]:
        return iter(self.own)


def test_a_document_of_ones_own_may_be_a_string_or_parts_and_blank_ones_are_left_out() -> None:
    assert list(read_pieces(Own("one", " \n", ["two", " three"], []), "train")) == [("one", True), ("two three", True)]
    with pytest.raises(UserError, match=r"Own.texts\('train'\) yields a document with 7 in it: yield strings"):
        list(read_pieces(Own(["one", 7]), "train"))
