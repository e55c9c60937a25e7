"""The whole model against PyTorch's layers, and its parameters against the formula."""

import torch
from torch import nn
from torch.testing import assert_close

from etude import build
from etude.config.compose import compose
from etude.config.identity import resolved
from etude.data.tokenizer import PAD
from etude.model.transformer import Transformer


def _copy_attention(theirs: nn.MultiheadAttention, ours: nn.Module) -> None:
    theirs.in_proj_weight.data = torch.cat([ours.queries.weight, ours.keys.weight, ours.values.weight])
    theirs.in_proj_bias.data = torch.cat([ours.queries.bias, ours.keys.bias, ours.values.bias])
    theirs.out_proj.load_state_dict(ours.output.state_dict())


def _copy_rest(theirs: nn.Module, ours: nn.Module, norms: list[nn.Module]) -> None:
    theirs.linear1.load_state_dict(ours.feedforward.inner.state_dict())
    theirs.linear2.load_state_dict(ours.feedforward.outer.state_dict())
    for number, norm in enumerate(norms, start=1):
        getattr(theirs, f"norm{number}").load_state_dict(norm.state_dict())


def pytorch_twin(model: Transformer, *, pre: bool) -> tuple[nn.Module, nn.Module]:
    """An encoder and a decoder of torch.nn with our weights."""
    sizes = {"d_model": 16, "nhead": 4, "dim_feedforward": 24, "dropout": 0.0, "batch_first": True}
    sizes |= {"norm_first": pre, "layer_norm_eps": 1e-6}
    encoder_norm, decoder_norm = (nn.LayerNorm(16, eps=1e-6) if pre else None for _ in range(2))
    encoder = nn.TransformerEncoder(nn.TransformerEncoderLayer(**sizes), 2, encoder_norm, enable_nested_tensor=False)
    decoder = nn.TransformerDecoder(nn.TransformerDecoderLayer(**sizes), 2, decoder_norm)
    for theirs, ours in zip(encoder.layers, model.encoder, strict=True):
        _copy_attention(theirs.self_attn, ours.attention)
        _copy_rest(theirs, ours, [ours.around_attention.norm, ours.around_feedforward.norm])
    for theirs, ours in zip(decoder.layers, model.decoder, strict=True):
        _copy_attention(theirs.self_attn, ours.attention)
        _copy_attention(theirs.multihead_attn, ours.cross_attention)
        arounds = (ours.around_attention, ours.around_cross_attention, ours.around_feedforward)
        _copy_rest(theirs, ours, [around.norm for around in arounds])
    if pre:
        encoder.norm.load_state_dict(model.after_encoder.state_dict())
        decoder.norm.load_state_dict(model.after_decoder.state_dict())
    return encoder.eval(), decoder.eval()


def _assert_equals_pytorch(model: Transformer, sentences: tuple[torch.Tensor, ...], *, pre: bool) -> None:
    for parameter in model.parameters():  # norms and biases start at ones and zeros, which would hide a swap
        parameter.data.add_(0.1 * torch.randn_like(parameter))
    encoder, decoder = pytorch_twin(model, pre=pre)
    source, mask, target = sentences
    embedding = model.embedding.source_table.weight
    x = model.source_position.embed(embedding[source] * 4.0, 0)  # sqrt(16) = 4
    y = model.target_position.embed(embedding[target] * 4.0, 0)
    memory = encoder(x, src_key_padding_mask=~mask)
    causal = nn.Transformer.generate_square_subsequent_mask(target.size(1))
    expected = decoder(y, memory, tgt_mask=causal, memory_key_padding_mask=~mask) @ embedding.T
    assert_close(model(source, mask, target), expected, atol=1e-5, rtol=1e-5)


def test_post_norm_equals_pytorchs_layers(tiny, sentences):
    model = tiny("model/residual=post", "model.attention.bias=true")
    _assert_equals_pytorch(model, sentences, pre=False)


def test_pre_norm_equals_pytorchs_layers_with_a_final_norm(tiny, sentences):
    model = tiny("model/residual=pre", "model.attention.bias=true")
    _assert_equals_pytorch(model, sentences, pre=True)


def parameters(overrides: list[str], vocabulary: int) -> int:
    with torch.device("meta"):
        model = build.model(resolved(compose(["scale=full", *overrides])), vocabulary)
    return sum(parameter.numel() for parameter in model.parameters())


def by_formula(vocabulary: int, n: int, d: int, ff: int, h: int, d_k: int, d_v: int) -> int:
    attention = 2 * d * h * d_k + 2 * d * h * d_v
    feedforward = 2 * d * ff + ff + d
    encoder, decoder = attention + feedforward + 2 * 2 * d, 2 * attention + feedforward + 3 * 2 * d
    return vocabulary * d + n * (encoder + decoder)


def test_the_base_model_has_the_parameters_of_the_formula():
    assert parameters([], 37000) == by_formula(37000, 6, 512, 2048, 8, 64, 64)


def test_the_big_model_has_the_parameters_of_the_formula():
    assert parameters(["model=big"], 37000) == by_formula(37000, 6, 1024, 4096, 16, 64, 64)


def test_row_b_shrinks_queries_and_keys_alone():
    assert parameters(["experiment=table3/B1"], 37000) == by_formula(37000, 6, 512, 2048, 8, 16, 64)


def test_heads_do_not_change_the_number_of_parameters():
    assert len({parameters([f"experiment=table3/{arm}"], 1000) for arm in ("base", "A1", "A2", "A3", "A4")}) == 1


def test_tiny_has_about_two_point_six_million_parameters_at_any_scale():
    counts = {parameters(["model=tiny", f"scale={scale}"], 10000) for scale in ("pocket", "full")}
    assert counts == {by_formula(10000, 4, 128, 256, 4, 32, 32)}
    assert 2.5e6 < counts.pop() < 2.7e6


def test_embeddings_have_unit_variance_after_their_factor(tiny):
    model = tiny("model.d_model=64", "model.heads=8")
    embedded = model.embedding.source(torch.arange(40))
    assert 0.9 < embedded.std().item() < 1.1


def test_three_way_tying_shares_one_matrix_and_none_shares_nothing(tiny):
    tied, untied = tiny("model/tying=all").embedding, tiny("model/tying=none").embedding
    assert tied.source_table.weight is tied.target_table.weight is tied.output_table.weight
    assert len({id(parameter) for parameter in untied.parameters()}) == 3


def test_decoder_tying_leaves_the_source_its_own_matrix(tiny):
    embedding = tiny("model/tying=decoder").embedding
    assert embedding.target_table.weight is embedding.output_table.weight
    assert embedding.source_table.weight is not embedding.target_table.weight


def test_padding_is_no_special_token_to_the_model_but_for_its_mask(tiny, sentences):
    model, (source, mask, target) = tiny(), sentences
    assert PAD in source
    everything = torch.ones_like(mask)
    assert not torch.equal(model(source, everything, target)[1], model(source, mask, target)[1])
