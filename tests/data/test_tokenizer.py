import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from hydra.utils import instantiate
from hypothesis import given, settings
from hypothesis import strategies as st
from omegaconf import OmegaConf

from etude.data.tokenizer import BOS, EOS, PAD, UNK, Bpe, Tokenizer
from etude.errors import UserError
from etude.paths import shipped

ALPHABET = "abcdefghijklmnopqrstuvwxyzäöüß.,!?½ﬁ"
TEXT = ["der Fuß, die Füße!", "½ a ﬁne day?", "the cat saw the dog.", " ".join(ALPHABET)] * 5


def bpe(vocab_size: int, **given: object) -> Bpe:
    """`tokenizer=bpe` of this size."""
    config = OmegaConf.load(shipped("conf") / "tokenizer" / "bpe.yaml")
    return instantiate(OmegaConf.merge(config, {"vocab_size": vocab_size, **given}))


@pytest.fixture(scope="module")
def tokenizer(tmp_path_factory: pytest.TempPathFactory) -> Tokenizer:
    file = tmp_path_factory.mktemp("tokenizer") / "tokenizer.model"
    file.write_bytes(bpe(60).train(TEXT))
    return Tokenizer(file)


def test_the_configured_size_is_the_corpus_s() -> None:
    config = OmegaConf.load(shipped("conf") / "tokenizer" / "bpe.yaml")
    assert instantiate(OmegaConf.create({"data": {"vocab_size": 77}, "tokenizer": config}).tokenizer).vocab_size == 77


def test_the_same_text_gives_the_same_bytes() -> None:
    assert bpe(60).train(TEXT) == bpe(60).train(iter(TEXT))


def test_the_special_pieces_come_first_and_occur_in_no_text(tokenizer: Tokenizer) -> None:
    assert len(tokenizer) == 60
    assert (PAD, BOS, EOS, UNK) == (0, 1, 2, 3)
    assert min(tokenizer.encode("<s> </s> <pad> the cat")) >= UNK
    assert tokenizer.encode("Ω")[-1] == UNK


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
    with pytest.raises(UserError, match="no vocabulary can be learned"):
        bpe(60).train(text)


@pytest.mark.parametrize("lines", [0, 1, len(TEXT)])
def test_an_error_in_the_text_is_told_as_itself(lines: int) -> None:
    def broken() -> Iterator[str]:
        yield from TEXT[:lines]
        raise UserError("the next line is broken")

    with pytest.raises(UserError, match="the next line is broken"):
        bpe(60).train(broken())


def test_an_unknown_normalization_names_the_nearest() -> None:
    with pytest.raises(UserError, match=r"tokenizer\.normalization=nmt_nkfc .*did you mean nmt_nfkc"):
        bpe(60, normalization="nmt_nkfc").train(TEXT)


@pytest.mark.parametrize("content", [None, b"", b"not a model"])
def test_a_file_that_is_no_model_is_an_error(tmp_path: Path, content: bytes | None) -> None:
    file = tmp_path / "tokenizer.model"
    if content is not None:
        file.write_bytes(content)
    with pytest.raises(UserError, match=r"tokenizer\.model is not a tokenizer model"):
        Tokenizer(file)
