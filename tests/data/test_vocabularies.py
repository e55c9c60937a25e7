"""Tokenizers of running text: every character counts, and those of other packages say what the packages say."""

import base64
import hashlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.control import assume
from tests.pieces import sentence_piece

from etude.data.running_text import cut
from etude.data.tokenizer import UNK, SentencePiece, Tokenizer, Vocabulary
from etude.data.vocabularies import Bytes, Existing, open_tokenizer, open_two, write_two
from etude.errors import UserError

ALPHABET = "abcdef .,\n\tä"
TEXT = "  a bad  face.\n\n\tdeaf bees,\nfed a cab äaä.\n" * 20
LINES = [line for line in TEXT.split("\n") if line]
running = st.text(ALPHABET, max_size=60)

BPE = sentence_piece(40, hard_vocab_limit=False)
LEARNED: dict[str, Vocabulary] = {
    "byte": Bytes(vocab_size=260),
    "bpe": BPE,
    **{kind: SentencePiece(**vars(BPE) | {"model_type": kind}) for kind in ("char", "unigram")},
}


def opened(folder: Path, vocabulary: Vocabulary) -> Tokenizer:
    (folder / "tokenizer.model").write_bytes(vocabulary.train(LINES, keep_spaces=True))
    return open_tokenizer(folder / "tokenizer.model")


@pytest.fixture(scope="module", params=[*LEARNED, "tokenizers", "tiktoken"])
def tokenizer(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Tokenizer:
    folder = tmp_path_factory.mktemp("tokenizer")
    return opened(folder, LEARNED.get(request.param) or MADE[request.param](folder))


@settings(deadline=None, max_examples=100)
@given(text=running)
def test_running_text_comes_back_with_all_its_spaces(tokenizer: Tokenizer, text: str) -> None:
    tokens = tokenizer.encode(text)
    assert all(UNK < token < len(tokenizer) for token in tokens)
    assert tokenizer.decode(tokens) == text
    assert [list(one) for one in tokenizer.encode_all([text, "a"])] == [tokens, tokenizer.encode("a")]
    assert len(tokenizer.pieces(text)) == len(tokens)


@settings(deadline=None, max_examples=100)
@given(text=running)
def test_a_text_in_pieces_has_the_tokens_of_the_whole(tokenizer: Tokenizer, text: str) -> None:
    pieces = list(cut([text], size=8))
    assume(all(piece[0] == " " for piece in pieces[1:]))  # where there are words to cut between
    assert [t for piece in pieces for t in tokenizer.encode(piece)] == tokenizer.encode(text)


def test_special_tokens_are_not_text(tokenizer: Tokenizer) -> None:
    assert tokenizer.decode([0, 1, *tokenizer.encode("a b"), 2, 0]) == "a b"
    assert tokenizer.decode([UNK, len(tokenizer) + 7]).split() == ["⁇", "⁇"]


def test_bytes_are_the_bytes_of_utf8(tmp_path: Path) -> None:
    bytewise = opened(tmp_path, Bytes(vocab_size=260))
    assert bytewise.encode("aä") == [4 + byte for byte in "aä".encode()]
    assert bytewise.subwords(bytewise.encode("a b")) == ["a", "▁", "b"]
    with pytest.raises(UserError, match="bytes are 260 tokens: leave it out"):
        Bytes(vocab_size=256).train([])


def _json_file(folder: Path) -> Vocabulary:
    tokenizers = pytest.importorskip("tokenizers")
    made = tokenizers.Tokenizer(tokenizers.models.BPE())
    made.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False)
    made.decoder = tokenizers.decoders.ByteLevel()
    start = tokenizers.pre_tokenizers.ByteLevel.alphabet()
    made.train_from_iterator(
        LINES, tokenizers.trainers.BpeTrainer(vocab_size=280, initial_alphabet=start, special_tokens=["<|end|>"])
    )
    made.save(str(folder / "tokenizer.json"))
    return Existing(file=str(folder / "tokenizer.json"), pattern=None, vocab_size=300)


def _ranks_file(folder: Path) -> Vocabulary:
    pytest.importorskip("tiktoken")
    tokens = [*(bytes([byte]) for byte in range(256)), b" a", b"ba", b"\n\n", b" ba"]
    lines = (f"{base64.b64encode(token).decode()} {rank}\n" for rank, token in enumerate(tokens))
    (folder / "own.tiktoken").write_text("".join(lines))
    return Existing(file=str(folder / "own.tiktoken"), pattern=None, vocab_size=300)


MADE: dict[str, Callable[[Path], Vocabulary]] = {"tokenizers": _json_file, "tiktoken": _ranks_file}


def test_a_tokenizer_json_is_read_as_its_package_reads_it(tmp_path: Path) -> None:
    vocabulary = _json_file(tmp_path)
    theirs = pytest.importorskip("tokenizers").Tokenizer.from_file(str(tmp_path / "tokenizer.json"))
    ours = opened(tmp_path, vocabulary)
    assert ours.encode(TEXT) == [4 + token for token in theirs.encode(TEXT, add_special_tokens=False).ids]
    assert len(ours) == 4 + theirs.get_vocab_size()


def test_what_a_tokenizer_json_does_not_know_is_unknown_and_its_numbers_may_have_gaps(tmp_path: Path) -> None:
    tokenizers = pytest.importorskip("tokenizers")
    made = tokenizers.Tokenizer(tokenizers.models.WordLevel({"a": 0, "bad": 7, "?": 3}, unk_token="?"))
    made.pre_tokenizer = tokenizers.pre_tokenizers.Whitespace()
    made.save(str(tmp_path / "tokenizer.json"))
    ours = opened(tmp_path, Existing(file=str(tmp_path / "tokenizer.json"), pattern=None, vocab_size=9))
    assert ours.encode("a bad face") == [4, 11, UNK]
    assert len(ours.pieces("a bad face")) == 3
    assert len(ours) == 12


def test_a_file_of_tiktoken_is_read_as_its_package_reads_it(tmp_path: Path) -> None:
    vocabulary = _ranks_file(tmp_path)
    tiktoken = pytest.importorskip("tiktoken")
    ranks = tiktoken.load.load_tiktoken_bpe(str(tmp_path / "own.tiktoken"))
    split = r"[a-z]+|\s+|."
    theirs = tiktoken.Encoding("own", pat_str=split, mergeable_ranks=ranks, special_tokens={})
    ours = opened(tmp_path, Existing(**vars(vocabulary) | {"pattern": split}))
    assert ours.encode(TEXT) == [4 + token for token in theirs.encode(TEXT)]
    assert len(ours) == 4 + len(ranks)


def test_another_file_is_another_tokenizer_wherever_it_is(tmp_path: Path) -> None:
    def options(name: str, content: str) -> dict[str, Any]:
        (tmp_path / name).write_text(content)
        return Existing(file=str(tmp_path / name), pattern=None, vocab_size=9).further_options()

    assert options("a", "{}") == options("b", "{}") != options("a", "{} ")


def test_a_file_that_was_replaced_under_a_run_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("{}")
    of_run = Existing(file=str(tmp_path / "a"), pattern=None, vocab_size=9, sum=hashlib.sha256(b"{}").hexdigest())
    assert of_run.further_options()["sum"] == of_run.sum
    (tmp_path / "a").write_text("{} ")
    with pytest.raises(UserError, match="is another vocabulary than this run has: restore"):
        of_run.further_options()


def test_an_existing_tokenizer_needs_its_file_and_its_package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    nowhere = (None, "tokenizer.file must name"), (str(tmp_path / "no"), "cannot read .*no: No such file")
    for file, told in (*nowhere, ("~nobody12/x", "cannot read ~nobody12/x")):
        with pytest.raises(UserError, match=told):
            Existing(file=file, pattern=None, vocab_size=9).train([])
    for package, content in (("tokenizers", json.dumps({})), ("tiktoken", "YQ== 0")):
        monkeypatch.setitem(__import__("sys").modules, package, None)
        (tmp_path / "file").write_text(content)
        with pytest.raises(UserError, match=rf"needs the package {package}: pip install 'etude\[tokenizers\]'"):
            opened(tmp_path, Existing(file=str(tmp_path / "file"), pattern=None, vocab_size=9))


@pytest.fixture(scope="module")
def foreign(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model as other programs have it: <unk>, <s>, </s>, and no padding."""
    import sentencepiece

    file = tmp_path_factory.mktemp("foreign") / "spm.model"
    with file.open("wb") as written:
        sentencepiece.SentencePieceTrainer.train(
            sentence_iterator=iter(LINES * 3), model_writer=written, vocab_size=30, hard_vocab_limit=False
        )
    return file


def test_a_model_of_sentencepiece_is_read_as_its_package_reads_it(foreign: Path, tmp_path: Path) -> None:
    import sentencepiece

    theirs = sentencepiece.SentencePieceProcessor(str(foreign))
    (tmp_path / "tokenizer.model").write_bytes(Existing(file=str(foreign), pattern=None, vocab_size=9).train([]))
    ours = open_tokenizer(tmp_path / "tokenizer.model")
    for line in (*LINES, "bad q face", ""):
        tokens = theirs.encode(line)
        assert ours.encode(line) == [UNK if token == theirs.unk_id() else 4 + token for token in tokens]
        assert ours.decode([1, *ours.encode(line), 2]) == theirs.decode(tokens)
    assert ours.unknown("bad q face") == "q"
    assert ours.subwords(ours.encode("bad")) == theirs.encode("bad", out_type=str)
    assert ours.pieces("bad q face") == theirs.encode("bad q face", out_type=str)
    assert len(ours) == 4 + len(theirs)
    with pytest.raises(UserError, match="learned from lines, and cannot give back running text"):
        opened(tmp_path, Existing(file=str(foreign), pattern=None, vocab_size=9))


@pytest.mark.parametrize("kind", ["bpe", "byte", "foreign"])
def test_the_tokenizer_of_a_run_keeps_its_numbers(kind: str, foreign: Path, tmp_path: Path) -> None:
    of_file = Existing(file=str(foreign), pattern=None, vocab_size=9)
    (file := tmp_path / "tokenizer.model").write_bytes(LEARNED.get(kind, of_file).train(LINES))
    assert Existing(file=str(file), pattern=None, vocab_size=9).train([]) == file.read_bytes()


@pytest.mark.parametrize(("package", "content"), [("tokenizers", "{}"), ("tiktoken", "no ranks"), ("tiktoken", "\xff")])
def test_a_file_of_another_kind_is_refused(package: str, content: str, tmp_path: Path) -> None:
    pytest.importorskip(package)
    (tmp_path / "file").write_text(content)
    with pytest.raises(UserError, match=r"tokenizer\.file is no (model of sentencepiece, no )?tokenizer\.json"):
        opened(tmp_path, Existing(file=str(tmp_path / "file"), pattern=None, vocab_size=9))


def test_two_vocabularies_are_those_of_either_side_alone(tmp_path: Path) -> None:
    sides = LINES, [line.upper() for line in LINES]
    learned = [BPE.train(lines) for lines in sides]
    (file := tmp_path / "tokenizer.model").write_bytes(write_two(*learned))
    both = open_tokenizer(file)
    for one, model, line in zip((both.source, both.target), learned, ("bad face", "BAD FACE"), strict=True):
        (alone := tmp_path / "one.model").write_bytes(model)
        assert one.encode(line) == open_tokenizer(alone).encode(line)
        assert one.serialized() == model
    (tmp_path / "long").write_bytes(SentencePiece(**vars(BPE) | {"vocab_size": 60}).train(LINES))
    assert both.decode(both.target.encode("BAD FACE")) == "BAD FACE"
    assert UNK in both.target.encode("bad face")
    larger = open_two(*(tmp_path / name for name in ("long", "one.model")))
    assert larger.decode([*larger.target.encode("BAD"), len(larger) - 1]) == "BAD ⁇ "
    with pytest.raises(UserError, match="holds two vocabularies, of source and target"):
        Existing(file=str(file), pattern=None, vocab_size=9).train([])
