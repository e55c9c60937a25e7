"""The probe of word order."""

import numpy as np
import pytest
import torch

from etude.data.tokenizer import EOS
from etude.inspect.analyze.order import score_shuffled_order, shuffle_sources


def probe(subject, text):
    return score_shuffled_order(subject, text, subject.likelihoods(text), seed=3)


def test_an_encoder_without_positions_does_not_notice(analysed):
    subject, text = analysed("model/position=none")
    found = probe(subject, text)
    assert found["perplexity"] == pytest.approx(subject.likelihoods(text).perplexity, rel=1e-5)
    assert found["change"] == pytest.approx(0.0, abs=1e-4)


@pytest.mark.parametrize("position", ["sinusoidal", "learned", "rope", "alibi", "shaw", "t5"])
def test_an_encoder_with_positions_does(analysed, position):
    subject, text = analysed(f"model/position={position}")
    assert abs(probe(subject, text)["change"]) > 1e-3  # without positions it is ten times nearer to zero


def test_it_shuffles_pieces_and_leaves_ends_padding_and_targets(analysed):
    _, text = analysed()
    for batch in text.batches:
        mixed = shuffle_sources(batch, np.random.default_rng(0))
        assert torch.equal(mixed.source.sort(dim=1).values, batch.source.sort(dim=1).values)
        assert torch.equal(mixed.source == EOS, batch.source == EOS)
        assert torch.equal(mixed.source == 0, batch.source == 0)
        assert mixed.target_in is batch.target_in
    assert any(not torch.equal(shuffle_sources(b, np.random.default_rng(0)).source, b.source) for b in text.batches)


def test_the_seed_decides_the_order(analysed):
    subject, text = analysed()
    assert probe(subject, text) == probe(subject, text)
