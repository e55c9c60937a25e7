"""Attention maps of a few sentences."""

import json

import numpy as np
import pytest

from etude.inspect.analyze.maps import collect_maps


def test_a_map_has_a_row_for_each_piece_that_looks_and_a_column_for_each_that_is_seen(analysed):
    subject, text = analysed()
    for drawn in collect_maps(subject, text, 3):
        shapes = {kind: np.array(drawn[kind]).shape for kind in ("encoder", "decoder", "cross")}
        source, target = len(drawn["source"]), len(drawn["target"])
        assert shapes["encoder"] == (2, 4, source, source)
        assert shapes["decoder"] == (2, 4, target, target)
        assert shapes["cross"] == (2, 4, target, source)


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
    assert len(list(collect_maps(one, text, 9))) == 2
    assert list(collect_maps(one, one.text([(long, long)]), 3)) == []
    assert list(collect_maps(one, text, 0)) == []


@pytest.mark.parametrize("size", [("model.n_layers=6", "model.heads=16"), ("model.n_layers=3", "model.heads=16")])
def test_many_heads_make_fewer_maps_and_no_larger_file(subject, size):
    one = subject(*size)
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
