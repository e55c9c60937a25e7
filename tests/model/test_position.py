"""What position schemes can tell apart, in a layer and in the whole model."""

import pytest
import torch
from torch import Tensor, nn
from torch.testing import assert_close

from etude.data.tokenizer import PAD
from etude.model.attention import MultiHeadAttention
from etude.model.backend import Eager
from etude.model.cache import SelfAttentionCache
from etude.model.encoder_decoder import EncoderDecoder
from etude.model.position import T5, Alibi, NoPosition, Position, Rotary, Shaw
from etude.model.scale import SqrtDk
from etude.paths import shipped

from .conftest import drawn

ALL = sorted(file.stem for file in (shipped("conf") / "model" / "position").glob("*.yaml"))
TABLES = ["learned", "learned_unscaled"]
ABSOLUTE = [*TABLES, "sinusoidal", "sinusoidal_t2t"]
RELATIVE = {
    "rope": lambda: Rotary(causal=True, d_k=4, base=10000.0),
    "alibi": lambda: Alibi(causal=True, heads=2),
    "shaw": lambda: Shaw(causal=True, d_k=4, clip=3).for_layers(1),
    "t5": lambda: T5(causal=True, heads=2, buckets=8, max_distance=12).for_layers(1),
}
ORDER = torch.tensor([3, 1, 6, 0, 2, 5, 4])
WHOLE = torch.ones(1, 7, dtype=torch.bool)


def stir(module: nn.Module) -> None:
    """Move its parameters off their beginnings, where a table of zeros would hide what it does."""
    generator = torch.Generator().manual_seed(2)
    with torch.no_grad():
        for parameter in module.parameters():
            parameter.add_(torch.randn(parameter.shape, generator=generator))


def scheme(name: str) -> Position:
    position = RELATIVE[name]()
    stir(position)
    return position.double().at_layer(0)


def placed(model: EncoderDecoder) -> EncoderDecoder:
    """The model with its position schemes stirred."""
    stir(model.encoder.position)
    stir(model.decoder.position)
    return model


def attention() -> MultiHeadAttention:
    torch.manual_seed(5)
    return MultiHeadAttention(
        SqrtDk(d_k=4), Eager(dropout=0.0), False, d_model=8, heads=2, d_k=4, d_v=4, bias=False
    ).double()


@pytest.mark.parametrize("name", RELATIVE)
def test_cached_self_attention_depends_on_offsets_only(name):
    layer, position, x, hidden = attention(), scheme(name), drawn(2, 6, 8), drawn(2, 5, 8)
    past, cache = torch.ones(6, 6, dtype=torch.bool).tril(), SelfAttentionCache()
    layer(hidden, hidden, past[:5, :5], position, cache)
    mask = torch.cat([torch.zeros(6, 5, dtype=torch.bool), past], dim=1)
    assert_close(layer(x, x, mask, position, cache), layer(x, x, past, position), atol=1e-6, rtol=1e-6)


@pytest.mark.parametrize("name", RELATIVE)
def test_self_attention_sees_in_which_order_keys_stand(name):
    layer, position, x = attention(), scheme(name), drawn(1, 7, 8)
    # The last query looks back on all the others, two of which change places.
    last, swapped = torch.arange(7) >= 6, torch.tensor([0, 4, 2, 3, 1, 5, 6])
    everything = torch.ones(7, dtype=torch.bool)
    here = layer(x, x, everything, position)[:, last]
    there = layer(x[:, swapped], x[:, swapped], everything, position)[:, last]
    assert (here - there).abs().max() > 1e-3
    assert_close(
        layer(x, x, everything, NoPosition(causal=True))[:, last],
        layer(x[:, swapped], x[:, swapped], everything, NoPosition(causal=True))[:, last],
    )


@pytest.mark.parametrize("position", ["none", *RELATIVE])
def test_padding_in_front_moves_nothing_where_offsets_are_all_that_counts(tiny, sentences, position):
    model, (source, mask, target) = placed(tiny(f"model/position={position}")), sentences
    moved, moved_mask = _padded_in_front(source, mask)
    assert_close(model.encode(moved, moved_mask)[:, 4:], model.encode(source, mask), atol=1e-4, rtol=1e-4)
    assert_close(model(moved, moved_mask, target), model(source, mask, target), atol=1e-4, rtol=1e-4)


@pytest.mark.parametrize("position", ABSOLUTE)
def test_padding_in_front_moves_sentences_that_know_where_they_stand(tiny, sentences, position):
    model, (source, mask, target) = tiny(f"model/position={position}"), sentences
    assert (model(*_padded_in_front(source, mask), target) - model(source, mask, target)).abs().max() > 0.01


def test_without_positions_the_encoder_sees_a_bag_of_words(tiny, sentences):
    model, (source, _, _) = tiny("model/position=none"), sentences
    plain = model.encode(source[:1], WHOLE)
    assert_close(model.encode(source[:1, ORDER], WHOLE), plain[:, ORDER], atol=1e-5, rtol=1e-5)
    assert isinstance(model.encoder.position, NoPosition)


@pytest.mark.parametrize("position", [*ABSOLUTE, *RELATIVE])
def test_with_positions_the_encoder_sees_order(tiny, sentences, position):
    model, (source, _, _) = placed(tiny(f"model/position={position}")), sentences
    plain = model.encode(source[:1], WHOLE)
    assert (model.encode(source[:1, ORDER], WHOLE) - plain[:, ORDER]).abs().max() > 0.01


def test_alibi_sees_distance_in_the_encoder_but_not_direction(tiny, sentences):
    model, (source, _, _) = tiny("model/position=alibi"), sentences
    backwards = model.encode(source[:1].flip(1), WHOLE).flip(1)
    assert_close(backwards, model.encode(source[:1], WHOLE), atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("position", ["rope", "shaw", "t5"])
def test_the_other_relative_schemes_see_direction_too(tiny, sentences, position):
    model, (source, _, _) = placed(tiny(f"model/position={position}")), sentences
    backwards = model.encode(source[:1].flip(1), WHOLE).flip(1)
    assert (backwards - model.encode(source[:1], WHOLE)).abs().max() > 0.01


@pytest.mark.parametrize("position", ALL)
def test_attention_to_the_encoder_has_no_axis_of_its_own(tiny, sentences, position):
    model, (source, mask, target) = placed(tiny(f"model/position={position}")), sentences
    memory = model.encode(source, mask)
    straight = model.decoder.start(memory, mask)
    mixed = model.decoder.start(memory[:, ORDER], mask[:, ORDER])
    for step in range(3):
        assert_close(model.step(target[:, step], mixed), model.step(target[:, step], straight), atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("position", sorted(set(ALL) - {*TABLES}))
def test_schemes_without_a_limit_go_on_past_any_table(tiny, position):
    model = placed(tiny(f"model/position={position}"))
    source = torch.randint(4, 40, (1, 300), generator=torch.Generator().manual_seed(1))
    assert model.encode(source, torch.ones_like(source, dtype=torch.bool)).isfinite().all()


def _padded_in_front(source: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
    return nn.functional.pad(source, (4, 0), value=PAD), nn.functional.pad(mask, (4, 0), value=False)
