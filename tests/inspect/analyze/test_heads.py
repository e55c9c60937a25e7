"""What is hung on to a model to analyse it does exactly what it claims, and leaves nothing behind; heads by removal."""

from copy import deepcopy

import pytest
import torch
from torch.testing import assert_close

from etude.inspect.analyze.heads import score_removals, silence_head
from etude.trained.heads import KINDS, places, watch_heads

VARIATIONS = [
    ("model/attention=multi_head",),
    ("model/attention=multi_head", "model.attention_bias=true", "model.d_v=3"),
    ("model/attention=grouped_query",),
    ("model/attention=local",),
    ("model/backend=sdpa", "model/position=t5"),
    ("model/position=shaw",),
    ("model/scale=cosine",),
]
RECURRENT = ("model/encoder=recurrent", "model/decoder=recurrent")
ids = " ".join


def logits(model, text):
    batch = text.batches[-1]
    with torch.no_grad():
        return model(batch.source, batch.source_mask, batch.target_in)


def watch(model, text, row=-1):
    seen = {}
    batch = text.batches[row]
    with torch.no_grad(), watch_heads(model, lambda place, weights: seen.update({(place.kind, place.layer): weights})):
        model(batch.source, batch.source_mask, batch.target_in)
    return batch, seen


def test_every_attention_has_its_place(analysed):
    subject, _ = analysed("model.n_layers=3")
    assert [(place.kind, place.layer) for place in places(subject.model)] == [(k, n) for k in KINDS for n in (1, 2, 3)]
    assert places(subject.model)[-1].attention is subject.model.decoder.layers[2].cross_attention


def test_where_a_layer_has_several_attentions_each_has_its_place_in_the_order_of_their_use(analysed):
    subject, text = analysed("model/encoder=evolved", "model/decoder=evolved")
    counts = {"encoder": 2, "decoder": 6, "cross": 4}  # of two layers
    found = [(place.kind, place.layer) for place in places(subject.model)]
    assert found == [(kind, n) for kind in KINDS for n in range(1, counts[kind] + 1)]
    order = [*watch(subject.model, text)[1]]  # as they were called
    assert [sorted(order, key=lambda place: KINDS.index(place[0]))] == [found]


@pytest.mark.parametrize("overrides", VARIATIONS, ids=ids)
def test_a_silenced_head_is_a_head_whose_rows_of_w_o_are_zero(analysed, overrides):
    subject, text = analysed(*overrides)
    whole = logits(subject.model, text)
    for n, place in enumerate(places(subject.model)):
        for head in (0, 2):
            edited = deepcopy(subject.model)
            output = places(edited)[n].output
            output.weight.data.unflatten(1, (4, -1))[:, head] = 0.0
            with silence_head(place, head):
                ours = logits(subject.model, text)
            assert_close(ours, logits(edited, text))
            assert not torch.allclose(ours, whole)


def test_of_differential_attention_a_silenced_head_is_a_map_that_says_nothing(analysed):
    subject, text = analysed("model/attention=differential")
    [place, *_] = places(subject.model)
    attention, seen = place.attention, []
    with attention.out_proj.register_forward_pre_hook(lambda module, inputs: seen.append(inputs[0])):
        logits(subject.model, text)
        with silence_head(place, 1):
            logits(subject.model, text)
    whole, without = (one.unflatten(-1, (2, -1)) for one in (seen[0], seen[len(seen) // 2]))
    assert torch.equal(whole[..., 1, :], without[..., 1, :]), "the other pair is as it was"
    assert not torch.allclose(whole[..., 0, :], without[..., 0, :])
    assert without[..., 0, :].abs().sum() > 0, "the first map of the pair still speaks"


def test_the_model_comes_out_as_it_went_in(analysed):
    subject, text = analysed()
    before = logits(subject.model, text)
    with silence_head(places(subject.model)[0], 1):
        pass
    watch(subject.model, text)
    assert torch.equal(logits(subject.model, text), before)
    assert not any(module._forward_pre_hooks for module in subject.model.modules())


def test_a_silence_ends_where_something_goes_wrong_in_it(analysed):
    subject, _ = analysed()
    place = places(subject.model)[0]
    assert place.attention is subject.model.encoder.layers[0].attention
    with pytest.raises(RuntimeError), silence_head(place, 1):
        raise RuntimeError
    assert not place.output._forward_pre_hooks


@pytest.mark.parametrize("alignment", ["additive", "dot", "general"])
@pytest.mark.parametrize("feeding", ["true", "false"])
def test_an_alignment_is_a_head_that_is_watched_and_silenced(analysed, alignment, feeding):
    subject, text = analysed(
        *RECURRENT, f"model/decoder/alignment={alignment}", f"model.decoder.input_feeding={feeding}"
    )
    [place] = places(subject.model)
    assert (place.kind, place.layer, place.heads) == ("cross", 1, 1)
    batch, seen = watch(subject.model, text)
    assert seen["cross", 1].shape == (len(batch.rows), 1, batch.target_in.size(1), batch.source.size(1))
    edited = deepcopy(subject.model)
    edited.decoder.alignment.join.weight.data[:, :16] = 0.0
    with silence_head(place, 0):
        assert_close(logits(subject.model, text), logits(edited, text))
    assert [row["attention"] for row in asked(subject, text)] == ["cross"]


def test_attention_without_a_softmax_is_watched_too(analysed):
    subject, text = analysed("model/attention=linear")
    batch, seen = watch(subject.model, text)
    assert len(seen) == 6
    for (kind, _), weights in seen.items():
        assert_close(weights.sum(dim=-1), torch.ones(weights.shape[:3]))
        if kind != "decoder":
            assert weights.masked_select(~batch.source_mask[:, None, None, :]).eq(0).all()


def test_a_model_that_looks_nowhere_has_no_heads_to_ask_about(analysed):
    subject, text = analysed(*RECURRENT, "model/decoder/alignment=none")
    assert places(subject.model) == []
    assert asked(subject, text) == []


@pytest.mark.parametrize("overrides", VARIATIONS, ids=ids)
def test_weights_that_are_watched_are_those_that_are_read_with(analysed, overrides):
    subject, text = analysed(*overrides)
    read = {}
    for place in places(subject.model):

        def reads(module, inputs, output, place=place):
            read[place.kind, place.layer] = inputs[2], output

        place.attention.backend.register_forward_hook(reads)
    batch, seen = watch(subject.model, text)
    assert set(seen) == set(read)
    real = {"encoder": batch.source_mask, "decoder": batch.target_out != 0, "cross": batch.target_out != 0}
    for (kind, layer), weights in seen.items():
        values, output = read[kind, layer]
        rows = real[kind][:, None, :, None]
        assert_close((weights @ values) * rows, output * rows)


def test_nobody_looks_at_padding_or_ahead(analysed):
    subject, text = analysed()
    batch, seen = watch(subject.model, text)
    assert not batch.source_mask.all(), "there is padding to be looked at"
    for (kind, _), weights in seen.items():
        assert_close(weights.sum(dim=-1), torch.ones(weights.shape[:3]))
        if kind == "decoder":
            assert weights.triu(diagonal=1).eq(0).all()
        else:
            assert weights.masked_select(~batch.source_mask[:, None, None, :]).eq(0).all()


def asked(subject, text, **how):
    return list(score_removals(subject, text, subject.likelihoods(text), **{"translated": False, "seed": 1} | how))


@pytest.mark.parametrize("attention", ["multi_head", "grouped_query", "local"])
def test_every_head_is_asked_about_once(analysed, attention):
    subject, text = analysed(f"model/attention={attention}")
    found = [(row["attention"], row["layer"], row["head"]) for row in asked(subject, text)]
    kinds = ("encoder", "decoder", "cross")
    assert found == [(kind, layer, head) for kind in kinds for layer in (1, 2) for head in (1, 2, 3, 4)]


def test_removal_costs_what_zero_rows_of_w_o_cost(analysed):
    subject, text = analysed()
    intact = subject.likelihoods(text).score
    row = next(r for r in asked(subject, text) if (r["attention"], r["layer"], r["head"]) == ("cross", 2, 3))
    d_v = 16 // 4
    subject.model.decoder.layers[1].cross_attention.out_proj.weight.data[:, 2 * d_v : 3 * d_v] = 0.0
    expected = subject.likelihoods(text).score
    assert row["perplexity"] == pytest.approx(expected)
    assert row["change"] == pytest.approx(expected - intact)
    low, high = row["interval"]
    assert low < row["change"] < high


def test_a_head_that_says_nothing_is_not_missed(analysed):
    subject, text = analysed()
    subject.model.encoder.layers[0].attention.v_proj.weight.data[:4] = 0.0  # d_v = 4: the first head
    first, second = asked(subject, text)[:2]
    assert (first["change"], first["interval"]) == (0.0, (0.0, 0.0))
    assert second["change"] != 0.0


def test_bleu_is_told_where_it_is_asked_for(analysed, pairs):
    subject, _ = analysed("model.n_layers=1", "model.heads=1", "decoding=greedy")
    text = subject.text(pairs[:4])
    assert all(row["bleu"] is None for row in asked(subject, text))
    assert all(0 <= row["bleu"] <= 100 for row in asked(subject, text, translated=True))
