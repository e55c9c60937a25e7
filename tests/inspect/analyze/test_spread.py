"""How widely and how far heads look, against cases where the answer is known."""

from collections import defaultdict

import numpy as np
import pytest
import torch
from scipy import stats

from etude.inspect.analyze.heads import watch_heads
from etude.inspect.analyze.spread import distance, entropy, measure_spreads


def test_even_attention_has_an_entropy_of_ln_n():
    weights = torch.full((1, 1, 2, 5), 0.2)
    assert entropy(weights).flatten().tolist() == pytest.approx([np.log(5)] * 2)


def test_all_weight_on_one_key_has_no_entropy_and_its_own_distance():
    weights = torch.eye(4).roll(1, dims=1)[None, None]  # 0 -> 1, 1 -> 2, 2 -> 3, 3 -> 0
    assert entropy(weights).flatten().tolist() == [0, 0, 0, 0]
    assert distance(weights).flatten().tolist() == [1, 1, 1, 3]


def test_an_encoder_that_looks_everywhere_alike_spreads_over_the_whole_sentence(analysed):
    subject, text = analysed()
    for layer in subject.model.encoder:
        layer.attention.q_proj.weight.data.zero_()
    tokens = text.source_lengths + 1
    far = sum(abs(i - j) / n for n in tokens for i in range(n) for j in range(n)) / tokens.sum()
    found = measure_spreads(subject, text)
    for layer in (1, 2):
        for head in (1, 2, 3, 4):
            assert found["encoder", layer, head]["entropy"] == pytest.approx(
                (tokens * np.log(tokens)).sum() / tokens.sum()
            )
            assert found["encoder", layer, head]["distance"] == pytest.approx(far)


def test_a_window_of_one_position_looks_nowhere_else(analysed):
    subject, text = analysed("model/attention=local", "model.attention.window=0")
    for (kind, _, _), found in measure_spreads(subject, text).items():
        if kind != "cross":
            assert found == {"entropy": 0.0, "distance": 0.0}
        else:
            assert found["entropy"] > 0.1


@pytest.mark.parametrize("backend", ["eager", "sdpa"])
def test_the_means_are_those_of_a_loop_over_sentences_without_padding(analysed, pairs, backend):
    subject, text = analysed(f"model/backend={backend}")
    entropies, distances = defaultdict(list), defaultdict(list)
    for pair in pairs:
        [batch] = subject.text([pair]).batches

        def see(place, weights):
            for head in range(4):
                for i, row in enumerate(weights[0, head].double().numpy()):
                    entropies[place.kind, place.layer, head + 1].append(stats.entropy(row))
                    distances[place.kind, place.layer, head + 1].append(sum(w * abs(i - j) for j, w in enumerate(row)))

        with torch.no_grad(), watch_heads(subject.model, see):
            subject.model(batch.source, batch.source_mask, batch.target_in)
    found = measure_spreads(subject, text)
    assert set(found) == set(entropies)
    for head, both in found.items():
        assert both["entropy"] == pytest.approx(np.mean(entropies[head]), abs=1e-5)
        assert both["distance"] == pytest.approx(np.mean(distances[head]), abs=1e-5)
