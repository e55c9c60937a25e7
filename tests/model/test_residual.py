"""How a sub-layer is wrapped, against the formulas."""

from functools import partial

import pytest
import torch
from torch import nn
from torch.testing import assert_close

from etude.model.norm import LayerNorm
from etude.model.residual import PostNorm, PreNorm, ReZero, Sandwich

layer_norm = partial(LayerNorm, d_model=6, eps=1e-6)
CLOSING = {PostNorm: nn.Identity, PreNorm: LayerNorm, Sandwich: LayerNorm, ReZero: nn.Identity}


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


def test_a_sandwich_adds_as_much_however_loud_its_sublayer_is():
    around, x = Sandwich(layer_norm, dropout=0.0), inputs()
    quiet, loud = (around(x, lambda h, by=by: by * sublayer(h)) for by in (1.0, 1000.0))
    assert_close(quiet, loud, atol=1e-4, rtol=1e-4)


def test_rezero_multiplies_what_the_sublayer_adds():
    around, x = jittered(ReZero(layer_norm, dropout=0.1)), inputs()
    assert_close(around(x, sublayer), x + around.alpha * sublayer(x))


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
