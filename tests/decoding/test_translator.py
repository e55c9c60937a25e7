"""Translating lines: none lost, none swapped, none added."""

import logging
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.pieces import sentence_piece
from torch import Tensor, nn

from etude.data.tokenizer import EOS, PAD, Tokenizer
from etude.data.vocabularies import Bytes, open_tokenizer
from etude.decoding.beam import BeamSearch
from etude.decoding.translator import Translator
from etude.tasks import build

WORDS = ["ein", "kleiner", "hund", "sieht", "die", "alte", "frau"]
SEARCH = BeamSearch(beam=2, alpha=0.6, max_len_offset=5)


@dataclass
class CopyState:
    source: Tensor
    fed: int = 0

    def reorder(self, rows: Tensor) -> None:
        self.source = self.source[rows]


class CopyModel(nn.Module):
    """Is all but certain that the translation is the source. Remembers the shapes it saw."""

    def __init__(self, vocab_size: int) -> None:
        super().__init__()
        self.certainty = nn.Parameter(torch.tensor(20.0))
        self.vocab_size, self.shapes = vocab_size, list[torch.Size]()

    def start(self, source: Tensor, source_mask: Tensor) -> CopyState:
        assert not self.training
        assert not torch.is_grad_enabled()
        assert source_mask.equal(source != PAD)
        assert (source == EOS).sum(dim=1).eq(1).all()
        self.shapes.append(source.shape)
        return CopyState(source)

    def step(self, tokens: Tensor, state: CopyState) -> Tensor:
        known = state.fed < state.source.size(1)
        token = state.source[:, state.fed] if known else torch.full_like(tokens, EOS)
        state.fed += 1
        return self.certainty * nn.functional.one_hot(token, self.vocab_size)


@pytest.fixture(scope="session")
def tokenizer(tmp_path_factory: Any) -> Tokenizer:
    file: Path = tmp_path_factory.mktemp("tokenizer") / "tokenizer.model"
    file.write_bytes(sentence_piece(40).train([" ".join(WORDS)] * 20))
    return Tokenizer(file)


def translator(tokenizer: Tokenizer, batch_tokens: int = 60, max_source_tokens: int = 100) -> Translator:
    model: Any = CopyModel(len(tokenizer))
    return Translator(model, tokenizer, SEARCH, batch_tokens=batch_tokens, max_source_tokens=max_source_tokens)


lines_of_text = st.lists(
    st.lists(st.sampled_from(WORDS), max_size=6).map(" ".join) | st.sampled_from(["", "  ", "\t", "\u3000"]),
    max_size=20,
)


def test_a_blank_line_is_blank_for_tokenizers_that_keep_spaces_too(tmp_path: Path) -> None:
    (tmp_path / "tokenizer.model").write_bytes(Bytes(vocab_size=260).train([]))
    assert translator(open_tokenizer(tmp_path / "tokenizer.model")).translate(["   ", "a b"]) == ["", "a b"]


@settings(max_examples=25, deadline=None)
@given(lines=lines_of_text, batch_tokens=st.integers(1, 200))
def test_every_line_is_answered_in_its_place(tokenizer: Tokenizer, lines: list[str], batch_tokens: int) -> None:
    assert translator(tokenizer, batch_tokens).translate(lines) == [" ".join(line.split()) for line in lines]


@settings(max_examples=25, deadline=None)
@given(lines=lines_of_text, batch_tokens=st.integers(1, 200))
def test_batches_keep_to_their_budget_and_hold_no_blank_line(
    tokenizer: Tokenizer, lines: list[str], batch_tokens: int
) -> None:
    subject: Any = translator(tokenizer, batch_tokens)
    subject.translate(lines)
    assert sum(rows for rows, _ in subject.model.shapes) == sum(bool(line.strip()) for line in lines)
    assert all(rows == 1 or rows * longest <= batch_tokens for rows, longest in subject.model.shapes)


@pytest.mark.parametrize(("search", "held"), [({"batch_tokens": 400}, 100), ({}, 7)])
def test_a_search_says_how_many_source_tokens_of_all_hypotheses_make_a_batch(
    tokenizer: Tokenizer, search: dict[str, int], held: int
) -> None:
    model: Any = CopyModel(len(tokenizer))
    chosen = BeamSearch(beam=4, alpha=0.6, max_len_offset=5, **search)
    config = {"budget": {"source_tokens": 7, "max_tokens": 9}}
    assert build.translator(config, model, tokenizer, chosen).batch_tokens == held


def test_a_line_too_long_is_cut_and_counted(tokenizer: Tokenizer, caplog: pytest.LogCaptureFixture) -> None:
    long = "hund " * 50
    with caplog.at_level(logging.WARNING):
        answers = translator(tokenizer, max_source_tokens=10).translate(["ein", long, "frau"])
    assert answers == ["ein", tokenizer.decode(tokenizer.encode(long)[:10]), "frau"]
    assert "1 of 3 lines had more than 10 subwords" in caplog.text


@pytest.mark.parametrize("training", [True, False])
def test_the_model_is_left_in_the_mode_it_was_in(tokenizer: Tokenizer, training: bool) -> None:
    subject = translator(tokenizer)
    subject.model.train(training)
    subject.translate(["ein"])
    assert subject.model.training is training

    def fail(*_: Any) -> Any:
        raise RuntimeError

    subject.search = fail  # type: ignore[assignment]
    with pytest.raises(RuntimeError):
        subject.translate(["ein"])
    assert subject.model.training is training
