"""Norms against their formulas."""

from functools import partial

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.testing import assert_close

from etude.model.norm import DynamicTanh, LayerNorm, NoNorm, PartialRmsNorm, RmsNorm


def drawn(kind, d_model, eps):
    """A norm whose gain, and bias if it has one, are not those of the start."""
    norm = kind(d_model=d_model, eps=eps).double()
    for parameter in norm.parameters():
        parameter.data.normal_(generator=torch.Generator().manual_seed(d_model))
    return norm


def inputs(d_model):
    return torch.randn(2, 3, d_model, dtype=torch.float64, generator=torch.Generator().manual_seed(d_model)) * 3 + 1


@settings(max_examples=25, deadline=None)
@given(d_model=st.integers(2, 40), eps=st.sampled_from([1e-6, 1e-2, 1.0]))
def test_layer_normalisation_is_its_formula(d_model, eps):
    norm, x = drawn(LayerNorm, d_model, eps), inputs(d_model)
    mean, variance = x.mean(-1, keepdim=True), x.var(-1, keepdim=True, unbiased=False)
    assert_close(norm(x), norm.weight * (x - mean) / (variance + eps).sqrt() + norm.bias)


@settings(max_examples=25, deadline=None)
@given(d_model=st.integers(2, 40), eps=st.sampled_from([1e-6, 1e-2, 1.0]))
def test_root_mean_square_normalisation_is_its_formula(d_model, eps):
    norm, x = drawn(RmsNorm, d_model, eps), inputs(d_model)
    assert_close(norm(x), norm.weight * x / (x.square().mean(-1, keepdim=True) + eps).sqrt())
    assert [name for name, _ in norm.named_parameters()] == ["weight"]


def test_a_partial_norm_divides_by_the_mean_of_the_first_numbers():
    norm, x = drawn(partial(PartialRmsNorm, share=0.3), 8, 1e-2), inputs(8)
    assert_close(norm(x), norm.weight * x / (x[..., :2].square().mean(-1, keepdim=True) + 1e-2).sqrt())


@pytest.mark.parametrize("share", [0, 1.5])
def test_a_share_of_nothing_or_of_more_than_all_is_refused(share):
    with pytest.raises(ValueError, match=rf"model\.norm\.share must be above 0 and at most 1, not {share}"):
        PartialRmsNorm(d_model=8, share=share, eps=1e-6)


def test_no_norm_gives_back_what_it_got():
    x = inputs(8)
    assert NoNorm()(x) is x
    assert not list(NoNorm().parameters())


def test_a_dynamic_tanh_is_its_formula_and_starts_with_its_alpha():
    norm, x = DynamicTanh(d_model=8, alpha=0.7).double(), inputs(8)
    assert_close(norm(x), (0.7 * x).tanh(), rtol=1e-6, atol=1e-6)
    for n, parameter in enumerate(norm.parameters()):
        parameter.data.normal_(generator=torch.Generator().manual_seed(n))
    assert_close(norm(x), norm.weight * (norm.alpha * x).tanh() + norm.bias)


def test_a_dynamic_tanh_refuses_to_start_flat():
    with pytest.raises(ValueError, match=r"model\.norm\.alpha must be above 0, not 0"):
        DynamicTanh(d_model=8, alpha=0)
