"""How weights start: what they follow from, and the moments of what is drawn."""

import math

import pytest
import torch
from torch import nn

from etude.model.embedding import TARGET_SPACES, TargetSpaceTable
from etude.model.init import GPT2, Fixup, Glorot, GlorotT2T, Normal
from etude.tasks import build

KINDS = {
    "glorot": Glorot(),
    "glorot_t2t": GlorotT2T(),
    "normal": Normal(std=0.02),
    "gpt2": GPT2(std=0.02),
    "fixup": Fixup(),
}


def model(tiny, init):
    """Wide enough to measure, W_K narrower than W_V; attention with biases that have left their zeros."""
    made = tiny("model.d_model=96", "model.d_ff=160", "model.n_layers=1", "model.d_k=12", "model.attention.bias=true")
    for module in made.modules():
        if isinstance(module, nn.Linear):
            nn.init.ones_(module.bias)
    init(made, seed=3)
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
    own, across = made.decoder.layers[0].attention, made.decoder.layers[0].cross_attention
    for part in (own.q_proj, own.k_proj, own.v_proj):
        assert_uniform(part.weight, 96, 48 + 48 + 96)  # heads times d_k, d_k, d_v
    assert_uniform(across.q_proj.weight, 96, 48)
    for part in (across.k_proj, across.v_proj):
        assert_uniform(part.weight, 96, 48 + 96)
    for part in (own.out_proj, across.out_proj):
        assert_uniform(part.weight, 96, 96)
    assert_uniform(made.decoder.layers[0].feedforward.inner.weight, 96, 160)


def test_normal_draws_every_matrix_with_the_same_deviation(tiny):
    for module in model(tiny, Normal(std=0.02)).modules():
        if isinstance(module, nn.Linear):
            assert abs(module.weight.std().item() / 0.02 - 1) < 0.05
            assert abs(module.weight.mean().item()) < 0.002


def test_gpt2_draws_tables_alike_and_less_where_a_stack_adds_to_its_stream(tiny):
    made = tiny("model/init=gpt2", "model/position=learned", "model.d_model=96", "model.d_ff=160")
    for name, module in made.named_modules():
        if isinstance(module, nn.Linear | nn.Embedding):
            adds = name.endswith(("out_proj", "feedforward.outer"))
            branches = 4 if name.startswith("encoder") else 6  # of two layers
            assert abs(module.weight.std().item() / (0.02 / math.sqrt(branches if adds else 1)) - 1) < 0.05


@pytest.mark.parametrize(
    ("typed", "branches"),
    [
        (["model/feedforward=experts", "model.feedforward.experts=4"], 4),  # a mixture is one branch
        (["model/encoder=shared"], 4),  # the layer is used twice
        (["model/attention=branched", "model/feedforward=none"], 2),  # its network is a part of it
    ],
)
def test_what_is_added_is_counted_by_branches_and_not_by_matrices(tiny, typed, branches):
    made = tiny("model/init=gpt2", "model.d_model=96", "model.d_ff=160", *typed)
    attention = made.encoder.layers[0].attention
    last = attention.network.outer if hasattr(attention, "network") else attention.out_proj
    assert abs(last.weight.std().item() / (0.02 / math.sqrt(branches)) - 1) < 0.05


def test_a_branched_attention_learns_from_fixups_start(tiny):
    made = tiny(
        *("model/init=fixup", "model/residual=fixup", "model/norm=none"),
        *("model/attention=branched", "model/feedforward=none", "model/position=learned"),
    ).train()
    ids = torch.randint(4, 30, (2, 5))
    for _ in range(2):
        made.zero_grad()
        made(ids, torch.ones_like(ids, dtype=torch.bool), ids).logsumexp(-1).sum().backward()
        with torch.no_grad():
            for weight in made.parameters():
                weight -= 0.1 * (0 if weight.grad is None else weight.grad.sign())
    assert made.encoder.layers[0].attention.network.outer.weight.grad.any()


def test_fixup_begins_with_branches_that_add_nothing_but_for_what_attends_to_the_encoder(tiny):
    made = tiny("model/init=fixup", "model.d_model=96", "model.d_ff=160")
    for layer in (*made.encoder.layers, *made.decoder.layers):
        own, network = layer.attention, layer.feedforward
        assert not own.out_proj.weight.any()
        assert not network.outer.weight.any()
        for linear in (own.q_proj, own.k_proj, own.v_proj):
            assert_uniform(linear.weight * 10 ** (1 / 6), 96, 0)  # of ten branches, four matrices each
        assert_uniform(network.inner.weight * 10 ** (1 / 2), 96, 0)
    for layer in made.decoder.layers:
        across = layer.cross_attention
        for linear in (across.q_proj, across.k_proj, across.v_proj, across.out_proj):
            assert_uniform(linear.weight, 96, 0)


@pytest.mark.parametrize("name", [name for name in KINDS if name != "gpt2"])
def test_embeddings_and_norms_set_themselves(tiny, name):
    made = tiny(f"model/init={name}", "model.d_model=96")
    assert abs(made.embedding.source_table.weight.std().item() * math.sqrt(96) - 1) < 0.05
    assert torch.equal(made.encoder.layers[0].attention_residual.norm.weight, torch.ones(96))


def test_every_weight_follows_from_the_seed_and_its_name(configured, variation):
    """And from nothing that was drawn before, or in another part of the model."""
    config = configured(variation)
    torch.manual_seed(1)
    weights = build.model(config, 40).state_dict()
    torch.manual_seed(2)
    again = build.model(config, 40).state_dict()
    other = build.model(config | {"seed": config["seed"] + 1}, 40).state_dict()
    assert all(torch.equal(weights[name], again[name]) for name in weights)
    drawn = [name for name, weight in weights.items() if weight.unique().numel() > 1]
    assert drawn
    assert not any(torch.equal(weights[name], other[name]) for name in drawn)


def test_no_two_matrices_start_alike(configured):
    weights = build.model(configured("model/tying=none", "model.d_ff=16"), 40).parameters()
    matrices = [weight for weight in weights if weight.dim() == 2]
    assert len({matrix.flatten()[:8].div(matrix.abs().max()).sum().item() for matrix in matrices}) == len(matrices)


def test_filling_a_model_leaves_pytorchs_generator_as_it_was(tiny):
    made = tiny()
    before = torch.get_rng_state()
    GlorotT2T()(made, seed=1)
    assert torch.equal(torch.get_rng_state(), before)


def test_joint_matrices_are_the_separate_ones_closer_to_zero(tiny):
    """The two variations of Glorot differ in the size of the numbers, and in no number's place or sign."""
    separate = model(tiny, Glorot()).encoder.layers[0].attention.q_proj.weight.clone()
    joint = model(tiny, GlorotT2T()).encoder.layers[0].attention.q_proj.weight
    assert torch.allclose(joint * math.sqrt((96 + 192) / (96 + 48)), separate)


def test_the_table_of_target_spaces_is_drawn_as_published():
    assert_uniform(TargetSpaceTable(1500).weight, TARGET_SPACES, 1500)
