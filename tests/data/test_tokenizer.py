import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from hydra.utils import instantiate
from hypothesis import given, settings
from hypothesis import strategies as st
from omegaconf import OmegaConf

from etude.data.tokenizer import BOS, EOS, PAD, UNK, SentencePiece, Tokenizer
from etude.errors import UserError
from etude.paths import shipped

ALPHABET = "abcdefghijklmnopqrstuvwxyzäöüß.,!?½ﬁ"
TEXT = ["der Fuß, die Füße!", "½ a ﬁne day?", "the cat saw the dog.", " ".join(ALPHABET)] * 5


ALL = {file.stem: OmegaConf.load(file) for file in sorted((shipped("conf") / "tokenizer").glob("*.yaml"))}
CONFIGS = {name: node for name, node in ALL.items() if node._target_.startswith("etude.data.tokenizer.")}


def configured(name: str, vocab_size: int, **given: object) -> SentencePiece:
    """`tokenizer=<name>` of this size."""
    return instantiate(OmegaConf.merge(CONFIGS[name], {"vocab_size": vocab_size, **given}))


def bpe(vocab_size: int, **given: object) -> SentencePiece:
    return configured("bpe", vocab_size, **given)


def learned(folder: Path, name: str) -> Tokenizer:
    file = folder / f"{name}.model"
    file.write_bytes(configured(name, 60, hard_vocab_limit=False).train(TEXT))
    return Tokenizer(file)


@pytest.fixture(scope="module", params=CONFIGS)
def any_tokenizer(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Tokenizer:
    return learned(tmp_path_factory.mktemp("tokenizer"), request.param)


@pytest.fixture(scope="module", params=["bpe", "unigram", "char"])
def tokenizer(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Tokenizer:
    """One that can spell what it has never seen."""
    return learned(tmp_path_factory.mktemp("tokenizer"), request.param)


@pytest.mark.parametrize("name", CONFIGS)
def test_the_configured_size_is_the_corpus_s(name: str) -> None:
    config = OmegaConf.create({"data": {"vocab_size": 77}, "tokenizer": CONFIGS[name]})
    assert instantiate(config.tokenizer).vocab_size == 77


@pytest.mark.parametrize("name", CONFIGS)
def test_the_same_text_gives_the_same_bytes(name: str) -> None:
    chosen = configured(name, 60, hard_vocab_limit=False)
    assert chosen.train(TEXT) == chosen.train(iter(TEXT))


def test_an_interrupt_while_subwords_are_learned_is_an_interrupt() -> None:
    def interrupted() -> Iterator[str]:
        yield from TEXT
        raise KeyboardInterrupt("asked to stop")

    with pytest.raises(KeyboardInterrupt, match="asked to stop"):
        configured("bpe", 60, hard_vocab_limit=False).train(interrupted())


def test_the_special_pieces_come_first_and_occur_in_no_text(any_tokenizer: Tokenizer) -> None:
    assert (PAD, BOS, EOS, UNK) == (0, 1, 2, 3)
    assert min(any_tokenizer.encode("<s> </s> <pad> the cat")) >= UNK
    assert any_tokenizer.encode("Ω")[-1] == UNK


def test_what_was_learned_from_comes_back_as_it_was(any_tokenizer: Tokenizer) -> None:
    assert len(any_tokenizer) <= 60
    for line in TEXT:
        assert any_tokenizer.decode(any_tokenizer.encode(line)) == line


def test_only_mixed_pieces_join_a_bracket_and_its_label(tmp_path: Path) -> None:
    line = "(NP XX )NP"
    for name, pieces in {"bpe_mixed": ["▁(NP", "▁XX", "▁)NP"], "bpe": ["▁(", "NP", "▁XX", "▁)", "NP"]}.items():
        (tmp_path / name).write_bytes(configured(name, 60, hard_vocab_limit=False).train([line] * 9))
        assert Tokenizer(tmp_path / name).subwords(Tokenizer(tmp_path / name).encode(line)) == pieces


def test_characters_are_single_and_words_are_whole(tmp_path: Path) -> None:
    chars, words = learned(tmp_path, "char"), learned(tmp_path, "word")
    assert chars.subwords(chars.encode("the cat")) == [*"▁the▁cat"]
    assert words.subwords(words.encode("the cat sat")) == ["▁the", "▁cat", "<unk>"]


@pytest.mark.parametrize("name", ["char", "word"])
def test_a_vocabulary_that_is_open_above_is_as_large_as_the_text_fills_it(name: str, tmp_path: Path) -> None:
    file = tmp_path / "model"
    file.write_bytes(configured(name, 5000).train(TEXT))
    there = {
        "char": {*"▁"} | {c for line in TEXT for c in line} - {" "},
        "word": {w for line in TEXT for w in line.split()},
    }
    assert len(Tokenizer(file)) == 4 + len(there[name])


words = st.text(alphabet=ALPHABET, min_size=1, max_size=12)


@settings(deadline=None, max_examples=200)
@given(st.lists(words, max_size=8).map(" ".join))
def test_text_that_the_vocabulary_covers_comes_back_as_it_was(tokenizer: Tokenizer, text: str) -> None:
    pieces = tokenizer.encode(text)
    assert UNK not in pieces
    assert tokenizer.decode(pieces) == text


@settings(deadline=None, max_examples=100)
@given(st.text(max_size=60))
def test_any_text_can_be_encoded_and_decoded_to_one_line(tokenizer: Tokenizer, text: str) -> None:
    pieces = tokenizer.encode(text)
    assert all(UNK <= piece < len(tokenizer) for piece in pieces)
    assert len(tokenizer.decode(pieces).splitlines()) <= 1


def test_white_space_of_any_kind_is_one_space(tokenizer: Tokenizer) -> None:
    assert tokenizer.encode("  the\u00a0\u00a0cat \t\u2028 saw\n") == tokenizer.encode("the cat saw")
    assert tokenizer.encode(" \t\u00a0") == []


def test_encoding_many_lines_is_encoding_each(tokenizer: Tokenizer) -> None:
    assert tokenizer.encode_all(TEXT) == [tokenizer.encode(line) for line in TEXT]


def test_special_pieces_decode_to_nothing(tokenizer: Tokenizer) -> None:
    pieces = tokenizer.encode("the cat")
    assert tokenizer.decode([BOS, *pieces, EOS, PAD, PAD]) == "the cat"


def test_a_vocabulary_that_cannot_be_filled_tells_the_largest_that_can() -> None:
    with pytest.raises(UserError, match=r"tokenizer\.vocab_size=5000 .* at most (\d+)") as caught:
        bpe(5000).train(TEXT)
    most = int(re.findall(r"at most (\d+)", str(caught.value))[0])
    assert bpe(most).train(TEXT)
    with pytest.raises(UserError):
        bpe(most + 1).train(TEXT)


def test_a_vocabulary_too_small_for_the_characters_tells_the_smallest_that_is_not() -> None:
    with pytest.raises(UserError, match=r"tokenizer\.vocab_size=10 .* at least (\d+)") as caught:
        bpe(10).train(TEXT)
    least = int(re.findall(r"at least (\d+)", str(caught.value))[0])
    assert bpe(least).train(TEXT)
    with pytest.raises(UserError):
        bpe(least - 1).train(TEXT)


@pytest.mark.parametrize("text", [[], ["", " "]])
def test_text_without_words_is_an_error(text: list[str]) -> None:
    with pytest.raises(UserError, match="the training text is empty: `data` must yield"):
        bpe(60).train(text)


@pytest.mark.parametrize("lines", [0, 1, len(TEXT)])
def test_an_error_in_the_text_is_told_as_itself(lines: int) -> None:
    def broken() -> Iterator[str]:
        yield from TEXT[:lines]
        raise UserError("the next line is broken")

    with pytest.raises(UserError, match="the next line is broken"):
        bpe(60).train(broken())


@pytest.mark.parametrize(
    ("key", "given", "nearest"), [("model_type", "chars", "char"), ("normalization", "nmt_nkfc", "nmt_nfkc")]
)
def test_an_unknown_type_or_normalization_names_the_nearest(key: str, given: str, nearest: str) -> None:
    with pytest.raises(UserError, match=rf"tokenizer\.{key}={given} .*did you mean {nearest}"):
        bpe(60, **{key: given}).train(TEXT)


def test_a_model_that_is_missing_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"tokenizer\.model is missing: prepare the data again"):
        Tokenizer(tmp_path / "tokenizer.model")


@pytest.mark.parametrize("content", [b"", b"not a model"])
def test_a_file_that_is_no_model_is_an_error(tmp_path: Path, content: bytes) -> None:
    file = tmp_path / "tokenizer.model"
    file.write_bytes(content)
    with pytest.raises(UserError, match=r"tokenizer\.model is not a tokenizer model"):
        Tokenizer(file)


def test_a_line_with_the_character_that_sentencepiece_reserves_is_learned_from(tmp_path: Path) -> None:
    lines = ["a b c d"] * 20 + ["zz\u2585z"] * 20
    file = tmp_path / "reserved.model"
    file.write_bytes(bpe(20, hard_vocab_limit=False).train(lines))
    assert UNK not in Tokenizer(file).encode("z")


def test_unknown_characters_are_those_that_become_unk(any_tokenizer: Tokenizer) -> None:
    """Neighbours become one token, whose number says little."""
    assert any_tokenizer.unknown("") == any_tokenizer.unknown("the cat saw the dog.") == ""
    assert any_tokenizer.unknown("the  Привет dog. 日本") == "Привет日本"
