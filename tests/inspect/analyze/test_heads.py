"""What is hung on to a model to analyse it says and does exactly what it claims, and leaves nothing behind."""

from copy import deepcopy

import pytest
import torch
from torch.testing import assert_close

from etude.inspect.analyze.heads import KINDS, places, silence_head, watch_heads

VARIATIONS = [
    ("model/attention=multi_head",),
    ("model/attention=multi_head", "model.attention_bias=true", "model.d_v=3"),
    ("model/attention=grouped_query",),
    ("model/attention=local",),
    ("model/backend=sdpa", "model/position=t5"),
    ("model/position=shaw",),
    ("model/scale=cosine",),
]
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
    assert places(subject.model)[-1].attention is subject.model.decoder[2].cross_attention


@pytest.mark.parametrize("overrides", VARIATIONS, ids=ids)
def test_a_silenced_head_is_a_head_whose_rows_of_w_o_are_zero(analysed, overrides):
    subject, text = analysed(*overrides)
    whole = logits(subject.model, text)
    for n, place in enumerate(places(subject.model)):
        for head in (0, 2):
            edited = deepcopy(subject.model)
            output = places(edited)[n].attention.out_proj
            output.weight.data.unflatten(1, (4, -1))[:, head] = 0.0
            with silence_head(place.attention, head):
                ours = logits(subject.model, text)
            assert_close(ours, logits(edited, text))
            assert not torch.allclose(ours, whole)


def test_the_model_comes_out_as_it_went_in(analysed):
    subject, text = analysed()
    before = logits(subject.model, text)
    with silence_head(subject.model.encoder[0].attention, 1):
        pass
    watch(subject.model, text)
    assert torch.equal(logits(subject.model, text), before)
    assert not any(module._forward_pre_hooks for module in subject.model.modules())


def test_a_silence_ends_where_something_goes_wrong_in_it(analysed):
    subject, _ = analysed()
    attention = subject.model.encoder[0].attention
    with pytest.raises(RuntimeError), silence_head(attention, 1):
        raise RuntimeError
    assert not attention.out_proj._forward_pre_hooks


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
