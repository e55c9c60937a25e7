"""Scales of attention scores against the formulas."""

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor, nn
from torch.testing import assert_close

from etude.model.scale import Cosine, Dk, LearnedPerHead, SqrtDk, SqrtDmodel, Unscaled, resize


def vectors(*, d_k: int = 6, heads: int = 4) -> tuple[Tensor, Tensor]:
    generator = torch.Generator().manual_seed(d_k)
    queries, keys = (torch.randn(2, heads, n, d_k, dtype=torch.float64, generator=generator) for n in (5, 7))
    return queries, keys


def scores(scale: nn.Module, queries: Tensor, keys: Tensor) -> Tensor:
    queries, keys = scale.double()(queries, keys)
    return queries @ keys.mT


@given(d_k=st.integers(1, 600), heads=st.integers(1, 8))
@settings(max_examples=30, deadline=None)
def test_fixed_scales_are_what_their_names_say(d_k, heads):
    queries, keys = vectors(d_k=d_k, heads=heads)
    plain = queries @ keys.mT
    assert_close(scores(Unscaled(), queries, keys), plain)
    assert_close(scores(SqrtDk(d_k=d_k), queries, keys), plain / math.sqrt(d_k))
    assert_close(scores(Dk(d_k=d_k), queries, keys), plain / d_k)
    assert_close(scores(SqrtDmodel(d_model=heads * d_k), queries, keys), plain / math.sqrt(heads * d_k))


def test_a_learned_scale_starts_as_sqrt_dk():
    assert_close(
        scores(LearnedPerHead(heads=4, d_k=6), *vectors()), scores(SqrtDk(d_k=6), *vectors()), rtol=1e-6, atol=0
    )


def test_a_learned_scale_gives_each_head_its_own_factor():
    scale, (queries, keys) = LearnedPerHead(heads=4, d_k=6).double(), vectors()
    factors = [0.5, 1.0, 3.0, 0.1]
    scale.log_factor.data = torch.tensor(factors, dtype=torch.float64).log()
    found = scores(scale, queries, keys)
    for head, factor in enumerate(factors):
        assert_close(found[:, head], factor * (queries[:, head] @ keys[:, head].mT))


def test_the_cosine_scale_is_g_times_the_cosine():
    queries, keys = vectors()
    scale = Cosine(length=10)
    scale.g.data.fill_(3.5)
    cosines = nn.functional.cosine_similarity(queries[:, :, :, None], keys[:, :, None], dim=-1)
    assert_close(scores(scale, queries, keys), 3.5 * cosines)


@pytest.mark.parametrize(("length", "g"), [(2, 1.0), (10, math.log2(90)), (64, math.log2(4032))])
def test_the_cosine_scale_starts_at_the_logarithm_of_its_paper(length, g):
    assert_close(Cosine(length=length).g.item(), g)


def test_the_cosine_scale_bears_a_vector_of_zeros():
    queries, keys = (x.detach() for x in vectors())
    queries[0, 0, 0] = 0
    queries.requires_grad_()
    scores(Cosine(length=10), queries, keys).sum().backward()
    assert queries.grad.isfinite().all()
    assert queries.grad.abs().max() < 1e6


def test_the_cosine_scale_refuses_a_length_without_a_logarithm():
    with pytest.raises(ValueError, match="length must be 2 or more, not 1"):
        Cosine(length=1)


@pytest.mark.parametrize("made", [SqrtDk, Dk, lambda d_k, heads=3: LearnedPerHead(heads=heads, d_k=d_k)])
def test_a_scale_for_other_heads_is_that_of_their_number_and_size(made):
    queries, keys = vectors(d_k=5, heads=2)
    own = made(d_k=5, heads=2) if not isinstance(made, type) else made(d_k=5)
    assert_close(scores(resize(made(d_k=7), 2, 5), queries, keys), scores(own, queries, keys))


def test_a_scale_that_knows_no_sizes_is_that_of_all():
    for scale in (Unscaled(), SqrtDmodel(d_model=8), Cosine(length=9)):
        assert resize(scale, 2, 5) is scale
