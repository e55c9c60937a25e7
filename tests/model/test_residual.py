"""How a sub-layer is wrapped, against the formulas."""

from functools import partial

import pytest
import torch
from torch import nn
from torch.testing import assert_close

from etude.model.norm import LayerNorm, NoNorm
from etude.model.numbered import number_layers
from etude.model.residual import (
    Fixup,
    GatedPreNorm,
    HyperConnection,
    LayerScale,
    PeriNorm,
    PostNorm,
    PreNorm,
    ReZero,
    ReZeroPreNorm,
    Sandwich,
)

layer_norm = partial(LayerNorm, d_model=6, eps=1e-6)
CLOSING = {PostNorm: nn.Identity, PreNorm: LayerNorm, Sandwich: LayerNorm, ReZero: nn.Identity, Fixup: nn.Identity}


def jittered(module):
    """With norms and factors that are not those of the start."""
    generator = torch.Generator().manual_seed(3)
    for parameter in module.parameters():
        parameter.data.add_(torch.randn(parameter.shape, generator=generator))
    return module.eval()


def inputs():
    return torch.randn(2, 3, 6, generator=torch.Generator().manual_seed(8))


def sublayer(x):
    return torch.tanh(x) * 2 + 0.3


def test_post_norm_normalises_the_sum():
    around, x = jittered(PostNorm(layer_norm, dropout=0.1)), inputs()
    assert_close(around(x, sublayer), around.norm(x + sublayer(x)))


def test_pre_norm_normalises_what_the_sublayer_reads():
    around, x = jittered(PreNorm(layer_norm, dropout=0.1)), inputs()
    assert_close(around(x, sublayer), x + sublayer(around.norm(x)))


def test_a_sandwich_normalises_before_and_after_with_two_norms():
    around, x = jittered(Sandwich(layer_norm, dropout=0.1)), inputs()
    assert around.before is not around.after
    assert_close(around(x, sublayer), x + around.after(sublayer(around.before(x))))


def test_rezero_multiplies_what_the_sublayer_adds():
    around, x = jittered(ReZero(layer_norm, dropout=0.1)), inputs()
    assert_close(around(x, sublayer), x + around.alpha * sublayer(x))


def test_rezero_before_a_norm_multiplies_what_the_sublayer_adds_and_starts_as_the_identity():
    around, x = ReZeroPreNorm(layer_norm, dropout=0.1).eval(), inputs()
    assert torch.equal(around(x, sublayer), x)
    jittered(around)
    assert_close(around(x, sublayer), x + around.alpha * sublayer(around.norm(x)))


def test_a_gate_chooses_for_each_number_between_the_sublayer_and_a_candidate():
    around, x = jittered(GatedPreNorm(layer_norm, dropout=0.1, d_model=6)), inputs()
    h, y = around.norm(x), sublayer(around.norm(x))

    def sigmoid(layer, one):
        return 1 / (1 + (-(one @ layer.weight[:, :6].T + y @ layer.weight[:, 6:].T + layer.bias)).exp())

    update, candidate = sigmoid(around.update, h), sigmoid(around.candidate, sigmoid(around.reset, h) * x)
    assert_close(around(x, sublayer), x + y + update * (candidate - y))


def test_fixup_shifts_what_the_sublayer_reads_and_scales_what_it_adds():
    around, x = Fixup(layer_norm, dropout=0.1).eval(), inputs()
    assert_close(around(x, sublayer), x + sublayer(x))
    jittered(around)
    assert_close(around(x, sublayer), x + around.scale * sublayer(x + around.shift))


def test_rezero_starts_as_the_identity_and_learns_from_the_first_step():
    around, x = ReZero(layer_norm, dropout=0.0), inputs()
    y = around(x, sublayer)
    assert torch.equal(y, x)
    y.sum().backward()
    assert_close(around.alpha.grad, sublayer(x).sum())


def test_rezero_makes_no_norm():
    def none_wanted():
        raise AssertionError("a norm was made")

    assert [name for name, _ in ReZero(none_wanted, dropout=0.1).named_parameters()] == ["alpha"]


@pytest.mark.parametrize(("kind", "closing"), list(CLOSING.items()))
def test_a_stack_is_closed_by_a_norm_where_its_sum_has_met_none(kind, closing):
    assert type(kind(layer_norm, dropout=0.1).final_norm()) is closing


@pytest.mark.parametrize("kind", CLOSING)
def test_dropout_falls_on_what_the_sublayer_adds_and_not_on_what_passes_by(kind):
    around, x = jittered(kind(layer_norm, dropout=0.5)).train(), inputs()
    torch.manual_seed(1)
    reference = around.dropout(torch.ones_like(x))  # what is dropped, and by what the rest is multiplied

    def ones(h):
        return torch.ones_like(h)

    torch.manual_seed(1)
    dropped = around(x, ones)
    around.eval()
    assert_close(dropped, around(x, lambda h: reference))


def test_peri_norm_is_a_sandwich_whose_embeddings_are_normalised():
    around, x = jittered(PeriNorm(layer_norm, dropout=0.1)), inputs()
    assert_close(around(x, sublayer), x + around.after(sublayer(around.before(x))))
    assert type(around.initial()) is type(around.final_norm()) is LayerNorm


def test_a_layer_scale_multiplies_each_dimension_of_what_is_added():
    around, x = LayerScale(layer_norm, dropout=0.1, d_model=6, initial_scale=0.25).eval(), inputs()
    assert_close(around(x, sublayer), x + 0.25 * sublayer(around.norm(x)))
    jittered(around)
    assert_close(around(x, sublayer), x + around.factor * sublayer(around.norm(x)))


def hyper(streams: int) -> HyperConnection:
    return HyperConnection(layer_norm, dropout=0.1, d_model=6, streams=streams).eval()


def test_hyper_connections_are_the_equations_of_their_paper():
    around = jittered(hyper(3))
    streams = torch.randn(2, 5, 3, 6, generator=torch.Generator().manual_seed(8))
    found = around(streams, sublayer)
    s_alpha, s_beta = around.factors
    w_m, w_r, w_beta = around.matrix[:, :1], around.matrix[:, 1:-1], around.matrix[:, -1:]
    for b, t in ((0, 0), (1, 4)):
        h = streams[b, t]  # (n, D), the hyper hidden matrix
        normed = around.streams_norm(h)
        a_m = around.read[:, None] + torch.eye(3)[:, :1] + s_alpha * (normed @ w_m).tanh()
        a_r = around.mix + torch.eye(3) + s_alpha * (normed @ w_r).tanh()
        beta = around.write[:, None] + s_beta * (normed @ w_beta).tanh()
        h_0 = (a_m.T @ h)[0]
        expected = beta @ sublayer(around.norm(h_0))[None] + a_r.T @ h
        assert_close(found[b, t], expected)


def test_hyper_connections_read_their_streams_in_turn_and_add_to_all_at_first():
    layers = nn.ModuleList(nn.ModuleList([hyper(3), hyper(3)]) for _ in range(2))
    number_layers(layers)
    x = inputs()
    streams = torch.stack([x, 2 * x, -x], dim=2)
    for around, read in zip([*layers[0], *layers[1]], [x, 2 * x, -x, x], strict=True):
        assert_close(around(streams, sublayer), streams + sublayer(around.norm(read))[:, :, None])


def test_streams_begin_as_copies_and_end_as_their_sum():
    around, x = hyper(4), inputs()
    assert_close(around.final_norm()(around.initial()(x)), around.norm(4 * x))


def test_without_a_stream_there_is_nothing_to_connect():
    with pytest.raises(ValueError, match=r"model\.residual\.streams must be 1 or more, not 0"):
        HyperConnection(NoNorm, dropout=0.0, d_model=6, streams=0)
