"""The whole model against PyTorch's layers, and its stacks against the equations of their papers."""

import re

import pytest
import torch
from torch import nn
from torch.testing import assert_close

from etude.config.compose import compose
from etude.config.resolve import resolve
from etude.data.tokenizer import PAD
from etude.errors import UserError
from etude.model.mask import causal_mask
from etude.model.state import SourceRows
from etude.tasks import build


def stack(kind, layers, closing, **options) -> nn.Module:
    """PyTorch's encoder or decoder, made of these layers."""
    made = kind(layers[0], len(layers), closing, **options)
    made.layers = nn.ModuleList(layers)
    return made.eval()


@pytest.mark.parametrize(("residual", "activation"), [("post", "relu"), ("pre", "gelu")])
def test_the_model_is_pytorchs_stacks_between_its_embeddings(jittered, pytorchs, sentences, residual, activation):
    chosen, pre = (f"model/residual={residual}", f"model/feedforward={activation}"), residual == "pre"
    model = jittered(*chosen, "model.attention.bias=true").double()
    first, second = (
        [pytorchs(layer, pre=pre, activation=activation) for layer in ours]
        for ours in (model.encoder.layers, model.decoder.layers)
    )
    encoder = stack(nn.TransformerEncoder, first, model.encoder.final_norm if pre else None, enable_nested_tensor=False)
    decoder = stack(nn.TransformerDecoder, second, model.decoder.final_norm if pre else None)
    source, mask, target = sentences
    embedding = model.embedding.source_table.weight
    x = model.encoder.position.add_to_embedding(embedding[source] * 4.0, 0)  # sqrt(16) = 4
    y = model.decoder.position.add_to_embedding(embedding[target] * 4.0, 0)
    memory = encoder(x, src_key_padding_mask=~mask)
    causal = nn.Transformer.generate_square_subsequent_mask(target.size(1))
    expected = decoder(y, memory, tgt_mask=causal, memory_key_padding_mask=~mask) @ embedding.T
    assert_close(model(source, mask, target), expected)


def parameters(overrides: list[str], vocabulary: int) -> int:
    with torch.device("meta"):
        model = build.model(resolve(compose(["scale=full", *overrides])), vocabulary)
    return sum(parameter.numel() for parameter in model.parameters())


def test_tiny_has_about_two_point_six_million_parameters_at_any_scale():
    counts = {parameters(["model=tiny", f"scale={scale}"], 10000) for scale in ("pocket", "full")}
    assert len(counts) == 1
    assert 2.5e6 < counts.pop() < 2.7e6


def test_padding_is_no_special_token_to_the_model_but_for_its_mask(tiny, sentences):
    model, (source, mask, target) = tiny(), sentences
    assert PAD in source
    everything = torch.ones_like(mask)
    assert not torch.equal(model(source, everything, target)[1], model(source, mask, target)[1])


@pytest.mark.parametrize("sides", [["encoder"], ["decoder"], ["encoder", "decoder"]], ids=" and ".join)
@pytest.mark.parametrize("position", ["sinusoidal", "shaw"])
def test_a_shared_stack_is_one_whose_layers_have_the_same_weights(jittered, sentences, sides, position):
    shared, plain = (
        jittered(*(f"model/{side}={kind}" for side in sides), f"model/position={position}").double()
        for kind in ("shared", "transformer")
    )
    weights = shared.state_dict()
    for name in plain.state_dict():
        stack, *rest = name.split(".")
        if stack in sides:  # each layer has what the first has, and so has its position
            first = re.sub(r"layers\.\d+", "layers.0", ".".join(rest))
            weights[name] = weights[f"{stack}.{first}"]
    plain.load_state_dict(weights)
    assert_close(shared(*sentences), plain(*sentences))


def test_a_universal_stack_adds_the_vector_of_each_step_and_none_around_them(jittered, sentences):
    sides = [f"model/{side}=universal" for side in ("encoder", "decoder")]
    around = [f"model.{side}.around={n}" for side, n in (("encoder", 1), ("decoder", 2))]
    model, (source, mask, target) = jittered(*sides, *around).double(), sentences
    encoder, decoder, causal = model.encoder, model.decoder, causal_mask(5, 0, mask.device)
    x = encoder.position.add_to_embedding(model.embedding.source(source), 0)
    for vector in [0.0, *encoder.signal.table, 0.0]:
        x = encoder.layers[0](x + vector, mask[:, None, None], encoder.position)
    y, layer = decoder.position.add_to_embedding(model.embedding.target(target), 0), decoder.layers[0]
    for vector in [0.0, 0.0, *decoder.signal.table, 0.0, 0.0]:
        y = layer(y + vector, causal, decoder.position, SourceRows(x, mask), layer.start())
    assert_close(model(source, mask, target), model.embedding.logits(y))


def test_each_layer_of_a_decoder_reads_a_mixture_of_its_own_by_the_equation(jittered, sentences):
    model, (source, mask, target) = jittered("model/encoder=transparent", "model/residual=pre").double(), sentences
    encoder, decoder = model.encoder, model.decoder
    x = encoder.position.add_to_embedding(model.embedding.source(source), 0)
    states = [encoder.final_norm(x)]
    for layer in encoder.layers:
        x = layer(x, mask[:, None, None], encoder.position)
        states.append(encoder.final_norm(x))
    y, causal = decoder.position.add_to_embedding(model.embedding.target(target), 0), causal_mask(5, 0, x.device)
    for layer, scores in zip(decoder.layers, encoder.scores, strict=True):
        memory = sum(share * state for share, state in zip(scores.softmax(0), states, strict=True))
        layer.read = nn.Identity()
        y = layer(y, causal, decoder.position, SourceRows(memory, mask), layer.start())
    expected = model.embedding.logits(decoder.final_norm(y))
    fresh = jittered("model/encoder=transparent", "model/residual=pre").double()
    assert_close(fresh(source, mask, target), expected)


@pytest.mark.parametrize("residual", ["post", "pre"])
@pytest.mark.parametrize(("layers", "groups", "halving"), [(2, 2, [1]), (5, 3, [2, 4]), (3, 1, []), (3, 3, [1, 2])])
def test_a_funnel_takes_means_of_pairs_within_the_first_layer_of_a_group(
    jittered, pytorchs, longer_sentences, residual, layers, groups, halving
):
    """Sentence by sentence with PyTorch's layers, so that there is no padding but the decoder's."""
    chosen = ["model/encoder=funnel", f"model.encoder.groups={groups}", f"model.n_layers={layers}"]
    model = jittered(*chosen, f"model/residual={residual}", "model.attention.bias=true").double()
    source, mask, target = longer_sentences
    found, encoder = model(source, mask, target), model.encoder
    for row, length in enumerate(mask.sum(dim=1).tolist()):
        x = encoder.position.add_to_embedding(model.embedding.source(source[row : row + 1, :length]), 0)
        for n, layer in enumerate(encoder.layers):
            theirs = pytorchs(layer, pre=residual == "pre")
            x = between(theirs, x, mean_of_pairs if n in halving else (lambda x: x))
        memory = encoder.final_norm(x)
        state = model.decoder.start(memory, torch.ones(1, memory.size(1), dtype=torch.bool))
        y = model.decoder(model.embedding.target(target[row : row + 1]), state)
        assert_close(found[row : row + 1], model.embedding.logits(y))


def between(layer: nn.TransformerEncoderLayer, x: torch.Tensor, change) -> torch.Tensor:
    """PyTorch's layer with something between its sub-layers."""
    if layer.norm_first:
        h = layer.norm1(x)
        x = change(x + layer.self_attn(h, h, h)[0])
        return x + layer.linear2(layer.linear1(layer.norm2(x)).relu())
    x = change(layer.norm1(x + layer.self_attn(x, x, x)[0]))
    return layer.norm2(x + layer.linear2(layer.linear1(x).relu()))


def mean_of_pairs(x: torch.Tensor) -> torch.Tensor:
    return torch.cat([x[:, n : n + 2].mean(dim=1, keepdim=True) for n in range(0, x.size(1), 2)], dim=1)


def test_a_funnel_of_more_groups_than_layers_is_refused(tiny):
    with pytest.raises(UserError, match=r"2 layers cannot be so many groups: say model\.encoder\.groups=2$"):
        tiny("model/encoder=funnel", "model.encoder.groups=3")


def test_at_first_every_mixture_is_a_mean(tiny):
    assert [scores.tolist() for scores in tiny("model/encoder=transparent").encoder.scores] == [[0.0] * 3] * 2
