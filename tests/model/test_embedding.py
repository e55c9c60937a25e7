"""Embeddings: how many matrices there are, and which pieces are heard."""

import pytest
import torch
from tests.model.conftest import options
from torch.testing import assert_close

from etude.data.tokenizer import BOS, PAD
from etude.model.embedding import TiedAll, TiedAllT2T, TiedDecoder, Untied, UntiedNormed

V, D = 11, 6
TOKENS = torch.tensor([[4, BOS, 9, PAD]])


@pytest.mark.parametrize("kind", [TiedAll, TiedDecoder, Untied])
def test_inputs_are_rows_times_the_root_of_d_model_and_logits_are_products_with_rows(kind):
    embedding, x = kind(V, d_model=D), torch.randn(2, 3, D)
    assert_close(embedding.source(TOKENS), embedding.source_table.weight[TOKENS] * D**0.5)
    assert_close(embedding.target(TOKENS), embedding.target_table.weight[TOKENS] * D**0.5)
    assert_close(embedding.logits(x), x @ embedding.output_table.weight.T)


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


@pytest.mark.parametrize("tying", options("tying"))
@pytest.mark.parametrize(
    "alone",
    [
        ["model=encoder_only", "task=masked_language_modelling"],
        ["task=language_modelling"],
        ["task=language_modelling", "model/decoder=recurrent", "model/decoder/alignment=none"],
        ["task=language_modelling", "model/decoder=convolution"],
    ],
    ids=["encoder", "decoder", "recurrent", "convolution"],
)
def test_a_stack_alone_keeps_no_weight_that_it_does_not_learn(tiny, sentences, tying, alone):
    """Two processes wait for the gradients of all weights."""
    model = tiny(*alone, tying)
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
