"""A toy model whose every probability can be looked up, and a tiny real one."""

from collections.abc import Iterator
from dataclasses import dataclass

import pytest
import torch
from tests.model.conftest import composed
from torch import Tensor

from etude.model.encoder_decoder import EncoderDecoder
from etude.tasks import build

BOS, EOS, UNK = 1, 2, 3


@dataclass
class TableState:
    """The source and the tokens fed so far, written as one number in base V."""

    sentence: Tensor
    prefix: Tensor

    def reorder(self, rows: Tensor) -> None:
        self.sentence, self.prefix = self.sentence[rows], self.prefix[rows]


class TableModel:
    """Log-probabilities of the next token, looked up by (first source token, prefix). Counts the rows it was asked for.

    `logits` is (sentences, V ** longest, V).
    """

    def __init__(self, logits: Tensor) -> None:
        self.logits, self.rows_asked = logits, 0

    @classmethod
    def random(cls, seed: int, *, sentences: int, vocab_size: int, longest: int, spread: float) -> "TableModel":
        generator = torch.Generator().manual_seed(seed)
        return cls(spread * torch.randn(sentences, vocab_size**longest, vocab_size, generator=generator))

    def start(self, source: Tensor, source_mask: Tensor) -> TableState:
        return TableState(source[:, 0], torch.zeros_like(source[:, 0]))

    def step(self, tokens: Tensor, state: TableState) -> Tensor:
        self.rows_asked += len(tokens)
        vocab_size = self.logits.size(-1)
        # The start token is the empty prefix; pieces are digits from 1 on, so that no two prefixes share a number.
        digit = torch.where(tokens == BOS, 0, tokens - EOS)
        state.prefix = state.prefix * vocab_size + digit
        return self.logits[state.sentence, state.prefix].clone()

    def log_probability(self, sentence: int, tokens: tuple[int, ...]) -> float:
        """log P(tokens, end), one look-up after the other, in float64."""
        total, prefix, vocab_size = 0.0, 0, self.logits.size(-1)
        for token in (*tokens, EOS):
            total += self.logits[sentence, prefix].double().log_softmax(dim=-1)[token].item()
            prefix = prefix * vocab_size + token - EOS
        return total

    def answers(self, longest: int) -> Iterator[tuple[int, ...]]:
        """Every token sequence that a search may answer with, end token left out."""
        beginnings: list[tuple[int, ...]] = [()]
        for _ in range(longest):
            yield from beginnings
            beginnings = [(*b, token) for b in beginnings for token in range(UNK, self.logits.size(-1))]


@pytest.fixture(scope="session")
def table_model() -> type[TableModel]:
    return TableModel


@pytest.fixture(scope="session")
def transformer() -> EncoderDecoder:
    """A tiny real model with random weights, in double precision so that only mistakes make a difference."""
    model = build.model(composed(), 12)
    with torch.no_grad():
        model.embedding.output_table.weight.mul_(2.0)  # so that the model prefers some words to others
    return model.double().eval()
