"""Beam search with the real model: cached, padded, reordered decoding gives what the full forward pass gives."""

from collections.abc import Sequence
from itertools import product

import pytest
import torch
from torch import Tensor

from etude.data.tokenizer import BOS, EOS, PAD, UNK
from etude.decoding.beam import BeamSearch
from etude.model.encoder_decoder import EncoderDecoder

SOURCES = [[5, 3, 8, EOS], [EOS], [4, 4, 9, 11, 7, 6, EOS], [10, EOS]]


def padded(rows: Sequence[Sequence[int]]) -> tuple[Tensor, Tensor]:
    tensors = [torch.tensor(row) for row in rows]
    source = torch.nn.utils.rnn.pad_sequence(tensors, batch_first=True, padding_value=PAD)
    return source, source != PAD


def log_probability(model: EncoderDecoder, source: list[int], tokens: Sequence[int]) -> float:
    """By one full forward pass over the unpadded pair."""
    target_in, target_out = torch.tensor([[BOS, *tokens]]), torch.tensor([*tokens, EOS])
    with torch.no_grad():
        logits = model(*padded([source]), target_in)[0]
    return logits.log_softmax(dim=-1).gather(1, target_out.unsqueeze(1)).sum().item()


@pytest.mark.parametrize("beam", [1, 2, 4])
def test_scores_are_those_of_the_full_forward_pass(transformer: EncoderDecoder, beam: int) -> None:
    search = BeamSearch(beam=beam, alpha=0.6, max_len_offset=6)
    for source, hypotheses in zip(SOURCES, search(transformer, *padded(SOURCES)), strict=True):
        for hypothesis in hypotheses:
            expected = log_probability(transformer, source, hypothesis.tokens)
            assert hypothesis.log_probability == pytest.approx(expected, abs=1e-4)
            assert hypothesis.score == pytest.approx(expected / ((6 + len(hypothesis.tokens)) / 6) ** 0.6, abs=1e-4)
            assert len(hypothesis.tokens) + 1 <= len(source) + 6


def test_a_wide_beam_finds_what_exhaustive_search_finds(transformer: EncoderDecoder) -> None:
    source = [5, EOS]
    answers = [a for length in range(3) for a in product(range(UNK, 12), repeat=length)]
    best = max(answers, key=lambda a: log_probability(transformer, source, a) / ((6 + len(a)) / 6) ** 0.6)
    search = BeamSearch(beam=len(answers), alpha=0.6, max_len_offset=1)
    assert search(transformer, *padded([source]))[0][0].tokens == best


@pytest.mark.parametrize("beam", [1, 3])
def test_an_answer_does_not_depend_on_the_batch(transformer: EncoderDecoder, beam: int) -> None:
    search = BeamSearch(beam=beam, alpha=0.6, max_len_offset=6)
    together = search(transformer, *padded(SOURCES))
    for source, hypotheses in zip(SOURCES, together, strict=True):
        (alone,) = search(transformer, *padded([source]))
        assert [h.tokens for h in alone] == [h.tokens for h in hypotheses]
        assert [h.score for h in alone] == pytest.approx([h.score for h in hypotheses], abs=1e-5)
    assert search(transformer, *padded(SOURCES)) == together
