"""Each kind of attention against a loop that follows the equations."""

import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn
from torch.testing import assert_close

from etude.model.attention import LocalAttention, MultiHeadAttention
from etude.model.backend import Eager
from etude.model.cache import SelfAttentionCache
from etude.model.position import NO_POSITION
from etude.model.scale import SqrtDk


def attention(d_model: int, heads: int, d_k: int, d_v: int, *, bias: bool = False) -> MultiHeadAttention:
    torch.manual_seed(5)
    return MultiHeadAttention(*parts(d_k), d_model=d_model, heads=heads, d_k=d_k, d_v=d_v, bias=bias).double()


def parts(d_k: int, *, is_cross: bool = False) -> tuple[nn.Module, nn.Module, bool]:
    return SqrtDk(d_k=d_k), Eager(dropout=0.0), is_cross


def by_hand(module: MultiHeadAttention, x: np.ndarray, context: np.ndarray, mask: np.ndarray, d_k: int) -> np.ndarray:
    """Equation (1) for one sentence, one head, one query at a time."""
    projections = (module.q_proj, module.k_proj, module.v_proj, module.out_proj)
    wq, wk, wv, wo = (part.weight.detach().numpy().T for part in projections)
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


def grouped(kv_heads: int, *, heads: int = 4, bias: bool = True) -> MultiHeadAttention:
    torch.manual_seed(6)
    sizes = {"d_model": 12, "heads": heads, "kv_heads": kv_heads, "d_k": 3, "d_v": 5}
    return MultiHeadAttention(*parts(3), **sizes, bias=bias).double()


def repeated(projection: nn.Linear, kv_heads: int, times: int) -> dict[str, torch.Tensor]:
    """The weights of a projection to `kv_heads` heads with each head written `times` times."""
    state = projection.state_dict()
    return {k: v.unflatten(0, (kv_heads, -1)).repeat_interleave(times, dim=0).flatten(0, 1) for k, v in state.items()}


@pytest.mark.parametrize("kv_heads", [1, 2, 4])
def test_grouped_queries_are_multi_head_attention_with_repeated_weights(kv_heads):
    ours, plain = grouped(kv_heads), attention(12, 4, 3, 5, bias=True)
    plain.q_proj.load_state_dict(ours.q_proj.state_dict())
    plain.out_proj.load_state_dict(ours.out_proj.state_dict())
    for name in ("k_proj", "v_proj"):
        getattr(plain, name).load_state_dict(repeated(getattr(ours, name), kv_heads, 4 // kv_heads))
    x, context, mask = torch.randn(2, 5, 12).double(), torch.randn(2, 7, 12).double(), torch.rand(2, 1, 5, 7) < 0.7
    assert_close(ours(x, context, mask, NO_POSITION), plain(x, context, mask, NO_POSITION))


@pytest.mark.parametrize("kv_heads", [1, 2])
def test_key_heads_are_what_is_projected_and_what_a_cache_keeps(kv_heads):
    module, cache = grouped(kv_heads), SelfAttentionCache()
    assert module.k_proj.weight.shape == (kv_heads * 3, 12)
    assert module.v_proj.weight.shape == (kv_heads * 5, 12)
    x = torch.randn(2, 1, 12).double()
    module(x, x, torch.ones(1, 1, dtype=torch.bool), NO_POSITION, cache)
    keys, values = cache.read(lambda: (torch.empty(2, kv_heads, 0, 3), torch.empty(2, kv_heads, 0, 5)))
    assert keys.shape == (2, kv_heads, 1, 3)
    assert values.shape == (2, kv_heads, 1, 5)


@pytest.mark.parametrize("kv_heads", [0, 3, 8])
def test_key_heads_that_do_not_divide_the_heads_are_refused(kv_heads):
    with pytest.raises(ValueError, match=f"kv_heads={kv_heads} must divide heads=4"):
        grouped(kv_heads)


def local(window: int, *, is_cross: bool = False) -> LocalAttention:
    torch.manual_seed(5)
    sizes = {"d_model": 6, "heads": 2, "d_k": 3, "d_v": 4, "bias": False}
    return LocalAttention(*parts(3, is_cross=is_cross), **sizes, window=window).double()


@settings(max_examples=25, deadline=None)
@given(window=st.integers(0, 9), length=st.integers(1, 8), seed=st.integers(0, 9))
def test_local_attention_sees_what_stands_within_the_window_and_is_allowed(window, length, seed):
    module, generator = local(window), np.random.default_rng(seed)
    x = generator.normal(size=(length, 6))
    allowed = (generator.random((length, length)) < 0.7) | np.eye(length, dtype=bool)
    near = np.array([[abs(i - j) <= window for j in range(length)] for i in range(length)])
    tokens = torch.tensor(x)[None]
    ours = module(tokens, tokens, torch.tensor(allowed)[None, None], NO_POSITION)
    assert_close(ours[0].detach().numpy(), by_hand(module, x, x, allowed & near, 3))


def test_local_attention_to_the_encoder_sees_everything():
    module, generator = local(1, is_cross=True), np.random.default_rng(1)
    x, context = generator.normal(size=(3, 6)), generator.normal(size=(8, 6))
    everything = np.ones((3, 8), dtype=bool)
    ours = module(torch.tensor(x)[None], torch.tensor(context)[None], torch.tensor(everything), NO_POSITION)
    assert_close(ours[0].detach().numpy(), by_hand(module, x, context, everything, 3))


def test_a_negative_window_is_refused():
    with pytest.raises(ValueError, match="window=-1 must be 0 or more"):
        local(-1)
