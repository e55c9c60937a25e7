"""Where heads look, how widely and how far, against cases where the answer is known; and maps of a few sentences."""

import json
from collections import defaultdict

import numpy as np
import pytest
import torch
from scipy import stats

from etude.data.batch import Batch
from etude.inspect.analyze.attention_maps import collect_maps, distance, entropy, measure_spreads
from etude.trained.heads import watch_heads


def test_even_attention_has_an_entropy_of_ln_n():
    weights = torch.full((1, 1, 2, 5), 0.2)
    assert entropy(weights).flatten().tolist() == pytest.approx([np.log(5)] * 2)


def test_all_weight_on_one_key_has_no_entropy_and_its_own_distance():
    weights = torch.eye(4).roll(1, dims=1)[None, None]  # 0 -> 1, 1 -> 2, 2 -> 3, 3 -> 0
    assert entropy(weights).flatten().tolist() == [0, 0, 0, 0]
    assert distance(weights).flatten().tolist() == [1, 1, 1, 3]


def test_an_encoder_that_looks_everywhere_alike_spreads_over_the_whole_sentence(analysed):
    subject, text = analysed()
    for layer in subject.model.encoder.layers:
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


@pytest.mark.parametrize(
    "overrides",
    [
        ["model/backend=eager"],
        ["model/backend=sdpa"],
        ["model/encoder=shared", "model/decoder=universal"],
        ["model/attention=modular", "model/attention/sink=zero"],
    ],
    ids=" ".join,
)
def test_the_means_are_those_of_a_loop_over_sentences_without_padding(analysed, pairs, overrides):
    """Where one layer is applied several times, over all of them."""
    subject, text = analysed(*overrides)
    entropies, distances = defaultdict(list), defaultdict(list)
    for pair in pairs:
        [batch] = subject.text([pair]).batches

        def see(place, weights):
            for head in range(4):
                for i, row in enumerate(weights[0, head].double().numpy()):
                    row /= row.sum()
                    entropies[place.kind, place.layer, head + 1].append(stats.entropy(row))
                    distances[place.kind, place.layer, head + 1].append(sum(w * abs(i - j) for j, w in enumerate(row)))

        with torch.no_grad(), watch_heads(subject.model, see):
            subject.model(batch.source, batch.source_mask, batch.target_in)
    found = measure_spreads(subject, text)
    assert set(found) == set(entropies)
    for head, both in found.items():
        assert both["entropy"] == pytest.approx(np.mean(entropies[head]), abs=1e-5)
        assert both["distance"] == pytest.approx(np.mean(distances[head]), abs=1e-5)


def test_where_positions_are_not_tokens_there_is_nothing_to_see(analysed):
    subject, text = analysed("model/encoder=funnel")
    assert {kind for kind, _, _ in measure_spreads(subject, text)} == {"decoder"}
    for drawn in collect_maps(subject, text, 3):
        assert [len(drawn[kind]) for kind in ("encoder", "decoder", "cross")] == [0, 2, 0]


def test_a_map_has_a_row_for_each_piece_that_looks_and_a_column_for_each_that_is_seen(analysed):
    subject, text = analysed()
    for drawn in collect_maps(subject, text, 3):
        shapes = {kind: np.array(drawn[kind]).shape for kind in ("encoder", "decoder", "cross")}
        source, target = len(drawn["source"]), len(drawn["target"])
        assert shapes["encoder"] == (2, 4, source, source)
        assert shapes["decoder"] == (2, 4, target, target)
        assert shapes["cross"] == (2, 4, target, source)


def test_a_map_has_no_padding_that_a_gpu_is_given(analysed, monkeypatch):
    subject, text = analysed()
    expected = [*collect_maps(subject, text, 3)]
    monkeypatch.setattr(Batch, "to", lambda batch, device: batch.pad_columns(8))
    assert [*collect_maps(subject, text, 3)] == expected


def test_a_map_names_the_pieces_of_its_sentence(analysed, pairs):
    subject, text = analysed()
    [drawn] = collect_maps(subject, text, 1)
    said = "".join(drawn["source"]).replace("▁", " ").removesuffix("</s>").strip()
    assert said in {source for source, _ in pairs}
    assert drawn["target"][0] == "<s>"


def test_weights_are_per_cents_that_add_up_but_for_rounding(analysed):
    subject, text = analysed()
    for drawn in collect_maps(subject, text, 3):
        for kind in ("encoder", "decoder", "cross"):
            weights = np.array(drawn[kind])
            assert weights.dtype.kind == "i"
            assert np.abs(weights.sum(axis=-1) - 100).max() <= weights.shape[-1] / 2
        assert not np.triu(np.array(drawn["decoder"]), k=1).any()


def test_sentences_differ_in_length_and_the_longest_comes_first(analysed):
    subject, text = analysed()
    lengths = [len(drawn["source"]) for drawn in collect_maps(subject, text, 3)]
    assert lengths == sorted(set(lengths), reverse=True)
    assert lengths[0] == text.source_lengths.max() + 1


def test_long_sentences_are_passed_over_and_more_are_not_made_than_there_are(analysed, subject):
    long = "a b c d e f g h " * 3
    one = subject()
    text = one.text([(long, long), ("a b", "b a"), ("c d e", "e d c")])
    drawn = ["".join(each["source"][:-1]) for each in collect_maps(one, text, 9)]
    assert sorted(drawn) == ["▁a▁b", "▁c▁d▁e"], "each once"
    assert list(collect_maps(one, one.text([(long, long)]), 3)) == []
    assert list(collect_maps(one, text, 0)) == []


def test_many_heads_make_fewer_maps_and_no_larger_file(subject):
    one = subject("model.n_layers=6", "model.heads=16")
    line = "a b c d e f g h a b c d"
    drawn = list(collect_maps(one, one.text([(line, line)] * 20), 20))
    assert 0 < len(drawn) < 20
    assert len(json.dumps(drawn, separators=(",", ":"))) < 250_000


def test_a_sentence_too_large_for_the_file_makes_room_for_a_shorter_one(subject):
    one = subject("model.n_layers=6", "model.heads=16")
    text = one.text([(line, line) for line in ("a b c d e f g h " * 2, "a b c d e f g h")])
    [drawn] = collect_maps(one, text, 2)
    assert len(drawn["source"]) == text.source_lengths.min() + 1


def test_all_models_are_drawn_on_the_same_sentences(analysed):
    first, second = (list(collect_maps(*analysed(f"model/position={name}"), 3)) for name in ("none", "rope"))
    assert [drawn["source"] for drawn in first] == [drawn["source"] for drawn in second]
