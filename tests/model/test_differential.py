"""Differential attention against equations 1 to 3 of its paper."""

import math

import pytest
import torch
from torch.testing import assert_close

from etude.model.backend import Eager
from etude.model.differential import DifferentialAttention
from etude.model.numbered import Place
from etude.model.position import NO_POSITION
from etude.model.scale import SqrtDk

from .conftest import drawn, jitter


def attention(heads: int = 4) -> DifferentialAttention:
    torch.manual_seed(5)
    sizes = {"d_model": 6, "heads": heads, "d_k": 3, "d_v": 5, "bias": False, "eps": 1e-5}
    return jitter(DifferentialAttention(SqrtDk(d_k=3), Eager(dropout=0.0), False, **sizes).double())


@pytest.mark.parametrize("layer", [0, 3])
def test_each_pair_of_heads_is_the_difference_of_two_attentions_normalised(layer):
    module, x = attention(), drawn(5, 6)
    module.set_place(Place(layer, 4, layer, module))
    initial = 0.8 - 0.6 * math.exp(-0.3 * layer)
    (q1, k1), (q2, k2) = module.lambdas
    factor = (q1 @ k1).exp() - (q2 @ k2).exp() + initial
    queries, keys, values = module.q_proj(x), module.k_proj(x), module.v_proj(x)
    pairs = []
    for pair in range(2):
        maps = []
        for h in (2 * pair, 2 * pair + 1):
            q, k = queries[:, 3 * h : 3 * h + 3], keys[:, 3 * h : 3 * h + 3]
            maps.append((q @ k.T / math.sqrt(3)).softmax(dim=-1))
        out = (maps[0] - factor * maps[1]) @ values[:, 10 * pair : 10 * pair + 10]
        pairs.append(module.gain * out / (out.square().mean(-1, keepdim=True) + 1e-5).sqrt() * (1 - initial))
    mask = torch.ones(5, 5, dtype=torch.bool)
    assert_close(module(x[None], x[None], mask, NO_POSITION)[0], module.out_proj(torch.cat(pairs, dim=-1)))


def test_an_odd_number_of_heads_is_refused_with_one_that_works():
    with pytest.raises(ValueError, match=r"say model\.heads=4, not 3"):
        attention(heads=3)
