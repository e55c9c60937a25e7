import logging
from collections.abc import Callable
from itertools import accumulate, chain
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from etude.data import splits
from etude.data.splits import TokenArray, TokenWriter
from etude.data.store import prepare
from etude.data.tokenizer import EOS, PAD, SentencePiece
from etude.errors import UserError

LONG = ("the cat " * 200, "tac eht " * 200)
BLANK = [("", "eht"), ("the", ""), ("", "")]
NO_PIECES = ("\u2581", "eht")  # sentencepiece's own sign for a space
GOOD = [("the cat", "tac eht"), ("a  dog", "god\u00a0a")]
MAX_TOKENS = 20


@pytest.fixture(params=["train", "valid", "test"])
def name(request: pytest.FixtureRequest) -> str:
    return request.param


def test_blank_pairs_are_left_out_of_every_split_and_counted(
    make_corpus: Callable, bpe: SentencePiece, tmp_path: Path, name: str
) -> None:
    corpus = make_corpus()
    before = len(corpus.splits[name])
    corpus.splits[name] += [*BLANK, NO_PIECES]
    store = prepare(corpus, bpe, tmp_path, 1000)
    assert len(store.split(name)) == before
    counts = store.meta["splits"][name]
    assert (counts["pairs"], counts["blank"], counts["dropped"], counts["cut"]) == (before, 4, 0, 0)


def test_a_long_pair_is_left_out_of_training_and_counted(
    make_corpus: Callable, bpe: SentencePiece, tmp_path: Path
) -> None:
    corpus = make_corpus()
    corpus.splits["train"] += [LONG, (LONG[0], "x"), ("x", LONG[1])]
    store = prepare(corpus, bpe, tmp_path, 300)
    assert len(store.split("train")) == 300
    assert store.meta["splits"]["train"]["dropped"] == 3


@pytest.mark.parametrize("name", ["valid", "test"])
def test_a_long_pair_stays_in_valid_and_test_with_its_pieces_cut_and_its_text_whole(
    make_corpus: Callable, bpe: SentencePiece, tmp_path: Path, name: str
) -> None:
    corpus = make_corpus(**{name: [*GOOD, LONG]})
    store = prepare(corpus, bpe, tmp_path, MAX_TOKENS)
    split = store.split(name)
    assert split.source_lengths[2] == split.target_lengths[2] == 21
    source, target = map(store.tokenizer.encode, LONG)
    assert split.sources[2].tolist() == [*source[:20], EOS]
    assert split.targets[2].tolist() == target[:21], "it does not end there"
    assert store.text(name) == tuple(map(list, zip(*GOOD, LONG, strict=True)))
    assert store.meta["splits"][name]["cut"] == 1


def test_a_line_of_exactly_the_limit_is_not_long(make_corpus: Callable, bpe: SentencePiece, tmp_path: Path) -> None:
    corpus = make_corpus()
    store = prepare(corpus, bpe, tmp_path, 10_000)
    lengths = [max(map(len, map(store.tokenizer.encode, pair))) for pair in corpus.splits["train"]]
    limit = sorted(lengths)[150]
    limited = prepare(corpus, bpe, tmp_path, limit)
    assert len(limited.split("train")) == sum(length <= limit for length in lengths)


def test_the_pieces_are_the_text_s(make_corpus: Callable, bpe: SentencePiece, tmp_path: Path, name: str) -> None:
    corpus = make_corpus()
    store = prepare(corpus, bpe, tmp_path, 1000)
    split = store.split(name)
    for row, (source, target) in enumerate(corpus.splits[name]):
        assert split.sources[row].tolist() == [*store.tokenizer.encode(source), EOS]
        assert split.targets[row].tolist() == [*store.tokenizer.encode(target), EOS]
        assert split.source_lengths[row] == len(split.sources[row])
        assert split.target_lengths[row] == len(split.targets[row])


def test_a_text_tokenised_in_many_parts_is_that_tokenised_at_once(
    make_corpus: Callable, bpe: SentencePiece, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    train = [*make_corpus().splits["train"], *BLANK, LONG] * 3
    whole = prepare(make_corpus(train=train), bpe, tmp_path / "whole", 64).path
    monkeypatch.setattr(splits, "CHUNK_SIZE", 50)
    parts = prepare(make_corpus(train=train), bpe, tmp_path / "parts", 64).path
    assert {f.name: f.read_bytes() for f in whole.iterdir()} == {f.name: f.read_bytes() for f in parts.iterdir()}


def test_a_split_without_a_usable_pair_is_an_error(
    make_corpus: Callable, bpe: SentencePiece, tmp_path: Path, name: str
) -> None:
    corpus = make_corpus(**{name: BLANK})
    complaint = "the training text is empty" if name == "train" else f"{name} text has no usable pair: 3 are blank"
    with pytest.raises(UserError, match=complaint):
        prepare(corpus, bpe, tmp_path, MAX_TOKENS)


def test_limits_that_no_training_pair_meets_are_an_error_that_names_the_key(
    make_corpus: Callable, bpe: SentencePiece, tmp_path: Path
) -> None:
    with pytest.raises(UserError, match=r"no usable pair: 0 are blank, 300 longer than budget\.max_tokens=0;"):
        prepare(make_corpus(), bpe, tmp_path, 0)


def test_the_summary_tells_in_one_line_what_became_of_the_lines(
    make_corpus: Callable, bpe: SentencePiece, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    corpus = make_corpus(test=[*GOOD, LONG])
    corpus.splits["train"] += [*BLANK, LONG]
    with caplog.at_level(logging.INFO, "etude"):
        prepare(corpus, bpe, tmp_path, 300)
    (summary,) = [record.getMessage() for record in caplog.records if "prepared" in record.getMessage()]
    assert "train 300 pairs (3 blank left out, 1 too long left out); valid 20 pairs; test 3 pairs (1 cut)" in summary


def written(folder: Path, lines: list[list[int]], vocab_size: int, chunk: int = 3) -> TokenArray:
    """The lines, written so many at a time."""
    with TokenWriter(folder / "side", vocab_size) as writer:
        for first in range(0, len(lines), chunk):
            writer.extend(lines[first : first + chunk])
    return TokenArray(folder / "side")


some_lines = st.lists(st.lists(st.integers(4, 99), min_size=1, max_size=9), min_size=1, max_size=12)


@settings(deadline=None, max_examples=50)
@given(some_lines, st.data())
def test_lines_come_back_and_pad_to_a_rectangle(lines: list[list[int]], data: st.DataObject) -> None:
    with TemporaryDirectory() as folder:
        pieces = written(Path(folder), lines, vocab_size=100)
        assert [line.tolist() for line in map(pieces.__getitem__, range(len(pieces)))] == lines
        assert pieces.lengths.tolist() == [len(line) for line in lines]
        rows = data.draw(st.lists(st.integers(0, len(lines) - 1), min_size=1))
        width = max(len(lines[row]) for row in rows)
        expected = [lines[row] + [PAD] * (width - len(lines[row])) for row in rows]
        padded = pieces.pad_rows(np.array(rows))
        assert padded.tolist() == expected
        assert padded.dtype == np.int64


@pytest.mark.parametrize("chunk", [1, 7, 5000])
@pytest.mark.parametrize(("vocab_size", "width"), [(100, np.uint16), (65_536, np.uint16), (65_537, np.int32)])
def test_a_stream_of_chunks_is_written_as_numpy_writes_the_whole(
    tmp_path: Path, chunk: int, vocab_size: int, width: type
) -> None:
    lines = [[vocab_size - 1 - n % 90] * (1 + n % 5) for n in range(5000)]
    written(tmp_path, lines, vocab_size, chunk)
    np.save(tmp_path / "flat.npy", np.array([*chain(*lines)], width))
    np.save(tmp_path / "ends.npy", np.array([*accumulate(map(len, lines))], np.int64))
    for own, whole in (("side.pieces.npy", "flat.npy"), ("side.ends.npy", "ends.npy")):
        assert (tmp_path / own).read_bytes() == (tmp_path / whole).read_bytes()
