"""Embeddings: how many matrices there are, and which pieces are heard."""

import itertools

import pytest
import torch
from tests.model.conftest import jitter, options
from torch import nn
from torch.testing import assert_close

from etude.data.tokenizer import BOS, PAD
from etude.model.embedding import (
    AdaptiveInput,
    AdaptiveSoftmax,
    Factorized,
    FactorizedShared,
    MixtureOfSoftmaxes,
    TiedAll,
    TiedAllT2T,
    TiedDecoder,
    TiedInputs,
    TiedUnscaled,
    Untied,
    UntiedNormed,
)

V, D = 11, 6
TOKENS = torch.tensor([[4, BOS, 9, PAD]])


@pytest.mark.parametrize("kind", [TiedAll, TiedDecoder, TiedInputs, Untied])
def test_inputs_are_rows_times_the_root_of_d_model_and_logits_are_products_with_rows(kind):
    embedding, x = kind(V, d_model=D), torch.randn(2, 3, D)
    assert_close(embedding.source(TOKENS), embedding.source_table.weight[TOKENS] * D**0.5)
    assert_close(embedding.target(TOKENS), embedding.target_table.weight[TOKENS] * D**0.5)
    assert_close(embedding.logits(x), x @ embedding.output_table.weight.T)


def test_without_the_factor_inputs_are_rows():
    embedding = TiedUnscaled(V, d_model=D)
    assert_close(embedding.source(TOKENS), embedding.source_table.weight[TOKENS])
    assert_close(embedding.target(TOKENS), embedding.output_table.weight[TOKENS])


def t2t() -> TiedAllT2T:
    torch.manual_seed(1)
    return TiedAllT2T(V, d_model=D, silent=[PAD, BOS])


def test_padding_and_start_enter_as_zero_vectors_as_published():
    heard = t2t().target(TOKENS)[0]
    assert torch.equal(heard[[1, 3]], torch.zeros(2, D))
    assert (heard[[0, 2]] != 0).all()


def test_the_source_carries_its_target_space_at_every_position_and_the_target_does_not():
    embedding = t2t()
    assert_close(embedding.source(TOKENS) - embedding.target(TOKENS), embedding.target_space.weight[:1].expand(1, 4, D))


def test_silent_pieces_can_still_be_predicted():
    embedding = t2t()
    embedding.logits(torch.ones(1, 1, D))[..., PAD].sum().backward()
    assert embedding.output_table.weight.grad[PAD].ne(0).all()


ALONE = {
    "encoder": ["model=encoder_only", "task=masked_language_modelling"],
    "decoder": ["task=language_modelling"],
    "recurrent": ["task=language_modelling", "model/decoder=recurrent", "model/decoder/alignment=none"],
    "convolution": ["task=language_modelling", "model/decoder=convolution"],
}


@pytest.mark.parametrize(
    ("stack", "tying"),
    [
        *itertools.product(["encoder", "decoder"], options("tying")),
        *itertools.product(["recurrent", "convolution"], ["model/tying=all"]),
    ],
)
def test_a_stack_alone_keeps_no_weight_that_it_does_not_learn(tiny, sentences, stack, tying):
    """Two processes wait for the gradients of all weights."""
    model = tiny(*ALONE[stack], tying)
    source, mask, target = sentences
    model(source, mask, target).sum().backward()
    learned = {name: weight.grad is not None for name, weight in model.named_parameters() if weight.requires_grad}
    assert all(learned.values()), [name for name in learned if not learned[name]]


@pytest.mark.parametrize("kind", [TiedAll, TiedDecoder, Untied])
def test_a_cap_bends_logits_and_a_base_width_divides_them(kind):
    embedding, x = kind(V, d_model=D, logit_cap=0.5, base_width=2), torch.randn(2, 3, D)
    products = x @ embedding.output_table.weight.T
    assert_close(embedding.logits(x), 0.5 * (products / (D / 2) ** 0.5 / 0.5).tanh())


def test_a_cap_of_nothing_is_refused():
    with pytest.raises(ValueError, match="logit_cap must be above 0, not 0"):
        TiedAll(V, d_model=D, logit_cap=0)


def test_embeddings_are_normalised_each_side_by_its_own():
    embedding = UntiedNormed(V, d_model=D, eps=1e-6)
    for n, parameter in enumerate([*embedding.source_norm.parameters(), *embedding.target_norm.parameters()]):
        parameter.data.normal_(generator=torch.Generator().manual_seed(n))
    for side in ("source", "target"):
        table, norm = getattr(embedding, f"{side}_table"), getattr(embedding, f"{side}_norm")
        x = table.weight[TOKENS] * D**0.5
        centred = x - x.mean(-1, keepdim=True)
        expected = norm.weight * centred / (centred.square().mean(-1, keepdim=True) + 1e-6).sqrt() + norm.bias
        assert_close(getattr(embedding, side)(TOKENS), expected)


def test_tied_inputs_share_a_matrix_that_is_not_the_outputs():
    embedding = TiedInputs(V, d_model=D)
    assert embedding.source_table is embedding.target_table is not embedding.output_table


def expanded(table) -> torch.Tensor:
    """V x D: the vector of every token, by the equations."""
    if hasattr(table, "clusters"):
        return torch.cat([expanded(one) for one in table.clusters])
    return table.weight if hasattr(table, "weight") else table.table.weight @ table.proj.weight.T


CLUSTERS = {"shares": [0.3, 0.6], "sizes": [3, 2]}  # of eleven tokens: three, four and four


@pytest.mark.parametrize(
    ("kind", "given"),
    [
        (Factorized, {"size": 2}),
        (FactorizedShared, {"size": 2}),
        (AdaptiveInput, CLUSTERS),
        (AdaptiveInput, CLUSTERS | {"sizes": [6, 6]}),
        (AdaptiveSoftmax, CLUSTERS | {"reserved": 2}),
    ],
)
def test_a_table_of_parts_is_a_matrix_that_it_never_makes(kind, given):
    embedding, tokens = jitter(kind(V, d_model=D, **given)), torch.arange(V)[None]
    assert_close(embedding.source(tokens)[0], expanded(embedding.source_table) * D**0.5)
    assert torch.equal(embedding.source(tokens), embedding.target(tokens))
    x = torch.randn(2, 3, D)
    assert_close(embedding.output_table.logits(x), x @ expanded(embedding.output_table).T)
    assert (embedding.output_table is embedding.source_table) == (kind is not Factorized)


def test_an_adaptive_softmax_is_pytorchs_own():
    ours = jitter(AdaptiveSoftmax(V, d_model=8, shares=[0.3, 0.6], sizes=[4, 2], reserved=0))
    theirs = nn.AdaptiveLogSoftmaxWithLoss(8, V, cutoffs=[3, 7], div_value=2.0)
    head, *tails = ours.output_table.clusters
    theirs.head.weight.data = torch.cat([head.weight, ours.cluster_table.weight]).detach()
    for (down, out), tail in zip(theirs.tail, tails, strict=True):
        down.weight.data, out.weight.data = tail.proj.weight.T.detach(), tail.table.weight.detach()
    x = torch.randn(6, 8)
    assert_close(ours.logits(x), theirs.log_prob(x))


def test_a_mixture_of_softmaxes_is_the_logarithm_of_a_mean_of_probabilities():
    embedding, x = jitter(MixtureOfSoftmaxes(V, d_model=D, softmaxes=3)), torch.randn(2, D)
    prior = (x @ embedding.prior.weight.T).softmax(-1)
    table = embedding.output_table.weight
    of_each = torch.stack([((x @ one.weight.T).tanh() @ table.T).softmax(-1) for one in embedding.contexts])
    assert_close(embedding.logits(x).exp(), torch.einsum("bk,kbv->bv", prior, of_each))


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"shares": [0.3], "sizes": [3, 2]}, r"shares=\[0\.3\] must have a size above 0 for each"),
        ({"shares": [0.3], "sizes": [0]}, r"say as many in model\.tying\.sizes, not \[0\]"),
        ({"shares": [0.6, 0.3], "sizes": [3, 2]}, r"cuts 11 tokens at \[7, 3\], which leaves a cluster without"),
        ({"shares": [0.99], "sizes": [3]}, "leaves a cluster without tokens"),
    ],
)
def test_clusters_that_cannot_be_are_refused(given, says):
    with pytest.raises(ValueError, match=says):
        AdaptiveInput(V, d_model=D, **given)
