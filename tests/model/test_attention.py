"""Multi-head attention against PyTorch's, and against a loop that follows the equations."""

import math

import numpy as np
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn
from torch.testing import assert_close

from etude.model.attention import MultiHeadAttention
from etude.model.kernel import Explicit
from etude.model.position import NO_POSITION
from etude.model.scale import SqrtDk, Unscaled


def attention(d_model: int, heads: int, d_k: int, d_v: int, *, bias: bool = False) -> MultiHeadAttention:
    torch.manual_seed(5)
    parts = SqrtDk(d_k=d_k), Explicit(dropout=0.0), False
    return MultiHeadAttention(*parts, d_model=d_model, heads=heads, d_k=d_k, d_v=d_v, bias=bias).double()


def by_hand(module: MultiHeadAttention, x: np.ndarray, context: np.ndarray, mask: np.ndarray, d_k: int) -> np.ndarray:
    """Equation (1) for one sentence, one head, one query at a time."""
    wq, wk, wv, wo = (
        part.weight.detach().numpy().T for part in (module.queries, module.keys, module.values, module.output)
    )
    d_v = wv.shape[1] // module.heads
    rows = []
    for t in range(len(x)):
        read = []
        for h in range(module.heads):
            query = x[t] @ wq[:, h * d_k : (h + 1) * d_k]
            allowed = [s for s in range(len(context)) if mask[t, s]]
            scores = [query @ (context[s] @ wk[:, h * d_k : (h + 1) * d_k]) / math.sqrt(d_k) for s in allowed]
            weights = np.exp(scores - np.max(scores))
            values = [context[s] @ wv[:, h * d_v : (h + 1) * d_v] for s in allowed]
            read.append(sum(w * v for w, v in zip(weights / weights.sum(), values, strict=True)))
        rows.append(np.concatenate(read) @ wo)
    return np.array(rows)


@settings(max_examples=25, deadline=None)
@given(heads=st.integers(1, 4), d_k=st.integers(1, 5), d_v=st.integers(1, 5), seed=st.integers(0, 9))
def test_attention_is_equation_one_head_by_head(heads, d_k, d_v, seed):
    module = attention(6, heads, d_k, d_v)
    generator = np.random.default_rng(seed)
    x, context = generator.normal(size=(3, 6)), generator.normal(size=(4, 6))
    mask = generator.random((3, 4)) < 0.6
    mask[:, 0] = True
    ours = module(torch.tensor(x)[None], torch.tensor(context)[None], torch.tensor(mask)[None, None], NO_POSITION)
    assert_close(ours[0].detach().numpy(), by_hand(module, x, context, mask, d_k))


def test_attention_equals_pytorchs_where_that_can_express_it():
    ours = attention(12, 3, 4, 4, bias=True)
    theirs = nn.MultiheadAttention(12, 3, batch_first=True).double()
    with torch.no_grad():
        theirs.in_proj_weight.copy_(torch.cat([ours.queries.weight, ours.keys.weight, ours.values.weight]))
        theirs.in_proj_bias.copy_(torch.cat([ours.queries.bias, ours.keys.bias, ours.values.bias]))
        theirs.out_proj.load_state_dict(ours.output.state_dict())
    x, context = torch.randn(2, 5, 12).double(), torch.randn(2, 7, 12).double()
    real = torch.arange(7) < torch.tensor([[7], [3]])
    expected, _ = theirs(x, context, context, key_padding_mask=~real)
    assert_close(ours(x, context, real[:, None, None, :], NO_POSITION), expected)


def test_a_row_that_may_look_nowhere_is_finite():
    module = attention(6, 2, 3, 3)
    x = torch.randn(1, 2, 6).double().requires_grad_()
    read = module(x, x, torch.zeros(1, 1, 1, 2, dtype=torch.bool), NO_POSITION)
    read.sum().backward()
    assert read.isfinite().all()
    assert x.grad.isfinite().all()


def test_row_b_changes_d_k_and_leaves_d_v_alone():
    module = attention(64, 8, 2, 8)
    assert module.queries.weight.shape == module.keys.weight.shape == (16, 64)
    assert module.values.weight.shape == (64, 64)
    assert module.output.weight.shape == (64, 64)


@given(d_k=st.integers(1, 600))
@settings(max_examples=30, deadline=None)
def test_sqrt_dk_gives_scores_of_unit_variance_that_unscaled_ones_lack(d_k):
    generator = torch.Generator().manual_seed(d_k)
    queries, keys = torch.randn(2, 1, 1, 300, d_k, generator=generator)
    scaled, unscaled = SqrtDk(d_k=d_k)(queries, keys), Unscaled()(queries, keys)
    plain = queries @ keys.transpose(-1, -2)
    assert_close(scaled[0] @ scaled[1].transpose(-1, -2), plain / math.sqrt(d_k), atol=1e-4, rtol=1e-4)
    assert_close(unscaled[0] @ unscaled[1].transpose(-1, -2), plain)
