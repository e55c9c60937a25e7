import logging
from collections.abc import Callable
from pathlib import Path

import pytest

from etude.data.splits import Limits
from etude.data.store import prepare
from etude.data.tokenizer import EOS, SentencePiece
from etude.errors import UserError

LONG = ("the cat " * 200, "tac eht " * 200)
BLANK = [("", "eht"), ("the", ""), ("", "")]
NO_PIECES = ("\u2581", "eht")  # sentencepiece's own sign for a space
GOOD = [("the cat", "tac eht"), ("a  dog", "god\u00a0a")]
LIMITS = Limits(max_tokens=20)


@pytest.fixture(params=["train", "valid", "test"])
def name(request: pytest.FixtureRequest) -> str:
    return request.param


def test_blank_pairs_are_left_out_of_every_split_and_counted(
    make_corpus: Callable, bpe: SentencePiece, tmp_path: Path, name: str
) -> None:
    corpus = make_corpus()
    before = len(corpus.splits[name])
    corpus.splits[name] += [*BLANK, NO_PIECES]
    store = prepare(corpus, bpe, tmp_path, Limits(max_tokens=1000))
    assert len(store.split(name)) == before
    counts = store.meta["splits"][name]
    assert (counts["pairs"], counts["blank"], counts["dropped"], counts["cut"]) == (before, 4, 0, 0)


def test_a_long_pair_is_left_out_of_training_and_counted(
    make_corpus: Callable, bpe: SentencePiece, tmp_path: Path
) -> None:
    corpus = make_corpus()
    corpus.splits["train"] += [LONG, (LONG[0], "x"), ("x", LONG[1])]
    store = prepare(corpus, bpe, tmp_path, Limits(max_tokens=300))
    assert len(store.split("train")) == 300
    assert store.meta["splits"]["train"]["dropped"] == 3


@pytest.mark.parametrize("name", ["valid", "test"])
def test_a_long_pair_stays_in_valid_and_test_with_its_pieces_cut_and_its_text_whole(
    make_corpus: Callable, bpe: SentencePiece, tmp_path: Path, name: str
) -> None:
    corpus = make_corpus(**{name: [*GOOD, LONG]})
    store = prepare(corpus, bpe, tmp_path, LIMITS)
    split = store.split(name)
    assert split.source_lengths[2] == split.target_lengths[2] == 21
    source, target = map(store.tokenizer.encode, LONG)
    assert split.sources[2].tolist() == [*source[:20], EOS]
    assert split.targets[2].tolist() == target[:21], "it does not end there"
    assert store.text(name) == tuple(map(list, zip(*GOOD, LONG, strict=True)))
    assert store.meta["splits"][name]["cut"] == 1


def test_a_line_of_exactly_the_limit_is_not_long(make_corpus: Callable, bpe: SentencePiece, tmp_path: Path) -> None:
    corpus = make_corpus()
    store = prepare(corpus, bpe, tmp_path, Limits(max_tokens=10_000))
    lengths = [max(map(len, map(store.tokenizer.encode, pair))) for pair in corpus.splits["train"]]
    limit = sorted(lengths)[150]
    limited = prepare(corpus, bpe, tmp_path, Limits(max_tokens=limit))
    assert len(limited.split("train")) == sum(length <= limit for length in lengths)


def test_the_pieces_are_the_text_s(make_corpus: Callable, bpe: SentencePiece, tmp_path: Path, name: str) -> None:
    corpus = make_corpus()
    store = prepare(corpus, bpe, tmp_path, Limits(max_tokens=1000))
    split = store.split(name)
    for row, (source, target) in enumerate(corpus.splits[name]):
        assert split.sources[row].tolist() == [*store.tokenizer.encode(source), EOS]
        assert split.targets[row].tolist() == [*store.tokenizer.encode(target), EOS]
        assert split.source_lengths[row] == len(split.sources[row])
        assert split.target_lengths[row] == len(split.targets[row])


def test_a_split_without_a_usable_pair_is_an_error(
    make_corpus: Callable, bpe: SentencePiece, tmp_path: Path, name: str
) -> None:
    corpus = make_corpus(**{name: BLANK})
    complaint = "the training text is empty" if name == "train" else f"{name} text has no usable pair: 3 are blank"
    with pytest.raises(UserError, match=complaint):
        prepare(corpus, bpe, tmp_path, LIMITS)


def test_limits_that_no_training_pair_meets_are_an_error_that_names_the_key(
    make_corpus: Callable, bpe: SentencePiece, tmp_path: Path
) -> None:
    with pytest.raises(UserError, match=r"no usable pair: 0 are blank, 300 longer than budget\.max_tokens=0;"):
        prepare(make_corpus(), bpe, tmp_path, Limits(max_tokens=0))


def test_the_summary_tells_in_one_line_what_became_of_the_lines(
    make_corpus: Callable, bpe: SentencePiece, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    corpus = make_corpus(test=[*GOOD, LONG])
    corpus.splits["train"] += [*BLANK, LONG]
    with caplog.at_level(logging.INFO, "etude"):
        prepare(corpus, bpe, tmp_path, Limits(max_tokens=300))
    (summary,) = [record.getMessage() for record in caplog.records if "prepared" in record.getMessage()]
    assert "train 300 pairs (3 blank left out, 1 too long left out); valid 20 pairs; test 3 pairs (1 cut)" in summary
