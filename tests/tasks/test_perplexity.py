"""Perplexity against a loop over tokens, and against torch's cross-entropy, in any batching."""

import math
from dataclasses import dataclass, replace
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor, nn

from etude.tasks.perplexity import perplexity, sum_tokens

PAD, BOS, EOS = 0, 1, 2
VOCAB_SIZE = 9


@dataclass
class Sentences:
    """What is read of a batch."""

    source: Tensor
    source_mask: Tensor
    target_in: Tensor
    target_out: Tensor

    def to(self, device: torch.device) -> "Sentences":
        return replace(self)


class Bigrams(nn.Module):
    """The next token depends on the last one and on the sum of the source. Dropout makes training mode show."""

    def __init__(self) -> None:
        super().__init__()
        generator = torch.Generator().manual_seed(0)
        self.table = nn.Parameter(3 * torch.randn(5, VOCAB_SIZE, VOCAB_SIZE, generator=generator))
        self.dropout = nn.Dropout(0.5)

    def forward(self, source: Tensor, source_mask: Tensor, target_in: Tensor) -> Tensor:
        assert not torch.is_grad_enabled()
        kind = (source * source_mask).sum(dim=1) % 5
        return self.dropout(self.table[kind.unsqueeze(1), target_in])


@pytest.fixture
def model() -> Bigrams:
    return Bigrams()


Pair = tuple[list[int], list[int]]
sides = st.lists(st.integers(3, VOCAB_SIZE - 1), max_size=6)
corpora = st.lists(st.tuples(sides, sides), min_size=1, max_size=12)


def batch(pairs: list[Pair]) -> Any:
    def padded(rows: list[list[int]]) -> Tensor:
        return nn.utils.rnn.pad_sequence([torch.tensor(row) for row in rows], batch_first=True, padding_value=PAD)

    source = padded([[*source, EOS] for source, _ in pairs])
    target_in, target_out = padded([[BOS, *target] for _, target in pairs]), padded([[*t, EOS] for _, t in pairs])
    return Sentences(source, source != PAD, target_in, target_out)


def batches(pairs: list[Pair], size: int) -> list[Any]:
    return [batch(pairs[i : i + size]) for i in range(0, len(pairs), size)]


def token_by_token(model: Bigrams, pairs: list[Pair]) -> tuple[float, int]:
    nats, tokens = 0.0, 0
    for source, target in pairs:
        for before, token in zip([BOS, *target], [*target, EOS], strict=True):
            row = model.table[(sum(source) + EOS) % 5, before].tolist()
            nats += math.log(sum(math.exp(x) for x in row)) - row[token]
            tokens += 1
    return nats, tokens


@settings(max_examples=40, deadline=None)
@given(pairs=corpora, size=st.integers(1, 12))
def test_the_sum_is_that_of_a_loop_over_tokens_however_the_text_is_batched(pairs: list[Pair], size: int) -> None:
    model = Bigrams()
    nats, tokens, _ = sum_tokens(model, batches(pairs, size))
    expected, count = token_by_token(model, pairs)
    assert tokens == count
    assert nats == pytest.approx(expected, rel=1e-5)


@pytest.mark.parametrize("training", [True, False])
def test_the_model_is_left_in_the_mode_it_was_in(model: Bigrams, training: bool) -> None:
    model.train(training)
    sum_tokens(model, [batch([([3], [4])])])
    assert model.training is training


def test_overflow_gives_infinity() -> None:
    assert perplexity(1e6, 1) == math.inf
    assert perplexity(math.inf, 1) == math.inf


def test_a_model_gone_astray_has_no_perplexity() -> None:
    assert math.isnan(perplexity(math.nan, 5))


def test_no_tokens_are_refused() -> None:
    with pytest.raises(ValueError, match="no tokens"):
        perplexity(0.0, 0)
