"""Attention without a softmax, against the sums of Katharopoulos et al. (2020) taken one position after another."""

import pytest
import torch
from torch.testing import assert_close

from etude.model.attention import LinearAttention, _feature_map
from etude.model.cache import RunningSums
from etude.model.position import NO_POSITION
from etude.model.scale import SqrtDk

from .conftest import drawn

K, V, H, D = 3, 5, 2, 8


def attention(is_cross: bool = False) -> LinearAttention:
    torch.manual_seed(3)
    return LinearAttention(
        SqrtDk(d_k=K), torch.nn.Identity(), is_cross, d_model=D, heads=H, d_k=K, d_v=V, bias=True
    ).double()


def phi(x: torch.Tensor) -> torch.Tensor:
    return torch.where(x > 0, x + 1, x.exp())


def by_the_recurrence(layer: LinearAttention, x: torch.Tensor) -> torch.Tensor:
    """Equations 18 to 20 of the paper, for each head: two sums that grow by a position at a time."""
    out = []
    s, z = torch.zeros(x.size(0), H, K, V, dtype=x.dtype), torch.zeros(x.size(0), H, K, dtype=x.dtype)
    for row in x.unbind(1):
        q = phi(layer.q_proj(row).view(-1, H, K) / K**0.5)
        k, v = phi(layer.k_proj(row).view(-1, H, K)), layer.v_proj(row).view(-1, H, V)
        s, z = s + k[..., None] * v[..., None, :], z + k
        read = torch.einsum("bhk,bhkv->bhv", q, s) / torch.einsum("bhk,bhk->bh", q, z)[..., None]
        out.append(layer.out_proj(read.flatten(1)))
    return torch.stack(out, dim=1)


def in_parts(layer, x, parts):
    """What the decoder's self-attention gives for `x` (B, T, D), so many positions at a time."""
    cache, start, out = layer.start(), 0, []
    for length in parts:
        mask = torch.ones(length, start + length, dtype=torch.bool).tril(start)
        here = x[:, start : start + length]
        out.append(layer(here, here, mask, NO_POSITION, cache))
        start += length
    return torch.cat(out, dim=1)


def test_the_masked_products_are_the_recurrence_of_the_paper():
    layer, x = attention(), drawn(2, 6, D)
    causal = torch.ones(6, 6, dtype=torch.bool).tril()
    assert_close(layer(x, x, causal, NO_POSITION, layer.start()), by_the_recurrence(layer, x))


@pytest.mark.parametrize("parts", [(1, 1, 1, 1, 1, 1), (2, 3, 1), (4, 2)])
def test_the_sums_go_on_from_any_position(parts):
    layer, x = attention(), drawn(2, 6, D)
    assert_close(in_parts(layer, x, parts), by_the_recurrence(layer, x))


def test_what_is_kept_while_decoding_does_not_grow():
    layer, x = attention(), drawn(2, 6, D)
    cache, sizes = layer.start(), set()
    assert isinstance(cache, RunningSums)
    for step in range(6):
        here = x[:, step : step + 1]
        layer(here, here, torch.ones(1, step + 1, dtype=torch.bool), NO_POSITION, cache)
        sizes.add(tuple(one.shape for one in cache._sums))
    assert sizes == {((2, H, K, V), (2, H, K))}


def test_long_sums_in_half_precision_lose_nothing_of_what_is_added():
    """In bfloat16 itself a sum of ones stops at 256."""
    cache = RunningSums()
    ones = torch.ones(1, 1, 1, 1, dtype=torch.bfloat16)
    for _ in range(1025):
        cache.read(lambda: (ones, ones))
    assert [one.dtype for one in cache.past] == [torch.bfloat16] * 2
    assert [one.item() for one in cache.past] == [1024, 1024]


def test_looking_at_the_encoder_is_the_weighted_mean_of_the_real_positions():
    layer, x, memory = attention(is_cross=True), drawn(2, 4, D), drawn(2, 5, D)
    real = torch.arange(5) < torch.tensor([5, 2])[:, None]
    read = layer(x, memory, real[:, None, None], NO_POSITION, layer.start())
    for b, t in ((0, 0), (1, 3)):
        heads = []
        for h in range(H):
            q = phi(layer.q_proj(x[b, t]).view(H, K)[h] / K**0.5)
            weights = torch.stack([q @ phi(layer.k_proj(m).view(H, K)[h]) for m in memory[b][real[b]]])
            values = torch.stack([layer.v_proj(m).view(H, V)[h] for m in memory[b][real[b]]])
            heads.append(weights @ values / weights.sum())
        assert_close(read[b, t], layer.out_proj(torch.cat(heads)))


@pytest.mark.parametrize("scores", [-160.0, -200.0])  # of queries: weights that are subnormal, and that are 0
@pytest.mark.parametrize("parts", [(6,), (2, 3, 1)])
def test_a_position_whose_weights_underflow_reads_nothing_and_all_gradients_are_finite(scores, parts):
    layer, x = attention().float(), drawn(2, 6, D).float()
    with torch.no_grad():
        layer.q_proj.bias.view(H, K)[:] = scores
        layer.v_proj.weight.mul_(100)
    read = in_parts(layer, x, parts)
    assert_close(read, layer.out_proj.bias.expand_as(read))
    assert all(gradient.isfinite().all() for gradient in torch.autograd.grad(read.sum(), [*layer.parameters()]))


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_the_features_are_positive_and_those_of_elu_in_any_precision(dtype):
    """elu(x) + 1 itself is 0 from -17 on, in bfloat16 from -6, and a row of such weights would divide by 0."""
    x = torch.linspace(-60, 60, 4001, dtype=torch.float64).to(dtype)
    found = _feature_map(x)
    assert bool((found > 0).all())
    exact = torch.nn.functional.elu(x.double()) + 1
    assert_close(found.double(), torch.where(x < -15, x.double().exp(), exact), rtol=4 * torch.finfo(dtype).eps, atol=0)


def test_the_gradient_at_zero_is_one_on_both_sides():
    x = torch.tensor([-1e-9, 0.0, 1e-9], dtype=torch.float64, requires_grad=True)
    _feature_map(x).sum().backward()
    assert_close(x.grad, torch.ones(3, dtype=torch.float64))
