"""How weights start, by the moments of what is drawn."""

import math

import pytest
import torch
from torch import nn

from etude.model.init import Glorot, GlorotT2T, Normal

KINDS = {"glorot": Glorot(), "glorot_t2t": GlorotT2T(), "normal": Normal(std=0.02)}


def model(tiny, init):
    """Wide enough to measure, W_K narrower than W_V; attention with biases that have left their zeros."""
    made = tiny("model.d_model=96", "model.d_ff=160", "model.n_layers=1", "model.d_k=12", "model.attention.bias=true")
    for module in made.modules():
        if isinstance(module, nn.Linear):
            nn.init.ones_(module.bias)
    init(made)
    return made


def assert_uniform(matrix, fan_in, fan_out):
    bound = math.sqrt(6 / (fan_in + fan_out))
    assert matrix.abs().max().item() <= bound
    assert matrix.abs().max().item() > 0.98 * bound
    assert abs(matrix.std().item() / (bound / math.sqrt(3)) - 1) < 0.05


@pytest.mark.parametrize("name", KINDS)
def test_every_bias_starts_at_zero(tiny, name):
    for module in model(tiny, KINDS[name]).modules():
        if isinstance(module, nn.Linear):
            assert not module.bias.any()


def test_glorot_draws_each_matrix_by_its_own_size(tiny):
    for module in model(tiny, Glorot()).modules():
        if isinstance(module, nn.Linear):
            assert_uniform(module.weight, module.in_features, module.out_features)


def test_glorot_of_the_published_code_takes_what_reads_the_same_vectors_as_one_matrix(tiny):
    made = model(tiny, GlorotT2T())
    own, across = made.decoder[0].attention, made.decoder[0].cross_attention
    for part in (own.queries, own.keys, own.values):
        assert_uniform(part.weight, 96, 48 + 48 + 96)  # heads times d_k, d_k, d_v
    assert_uniform(across.queries.weight, 96, 48)
    for part in (across.keys, across.values):
        assert_uniform(part.weight, 96, 48 + 96)
    for part in (own.output, across.output):
        assert_uniform(part.weight, 96, 96)
    assert_uniform(made.decoder[0].feedforward.inner.weight, 96, 160)


def test_normal_draws_every_matrix_with_the_same_deviation(tiny):
    for module in model(tiny, Normal(std=0.02)).modules():
        if isinstance(module, nn.Linear):
            assert abs(module.weight.std().item() / 0.02 - 1) < 0.05
            assert abs(module.weight.mean().item()) < 0.002


@pytest.mark.parametrize("name", KINDS)
def test_embeddings_and_norms_set_themselves(tiny, name):
    made = tiny(f"model/init={name}", "model.d_model=96")
    assert abs(made.embedding.source_table.weight.std().item() * math.sqrt(96) - 1) < 0.05
    assert torch.equal(made.encoder[0].around_attention.norm.weight, torch.ones(96))
