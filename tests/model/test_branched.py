"""Branched attention against its equation, one head at a time."""

import math
from functools import partial

import pytest
import torch
from torch.testing import assert_close

from etude.model.backend import Eager
from etude.model.branched import BranchedAttention
from etude.model.feedforward import PlainFeedForward
from etude.model.position import NO_POSITION
from etude.model.scale import SqrtDk

from .conftest import drawn, jitter

D, H, K, T = 6, 3, 4, 5


@pytest.mark.parametrize("bias", [False, True])
def test_each_head_goes_through_the_network_by_itself_and_is_weighed_before_and_after(bias):
    torch.manual_seed(5)
    network = partial(PlainFeedForward, d_model=D, d_ff=7, activation="gelu")
    sizes = {"d_model": D, "heads": H, "d_k": K, "d_v": K, "bias": bias}
    module = jitter(BranchedAttention(SqrtDk(d_k=K), Eager(dropout=0.0), False, **sizes, network=network).double())
    x, allowed = drawn(T, D), torch.ones(T, T, dtype=torch.bool).tril()
    queries, keys, values = (p(x).unflatten(-1, (H, K)) for p in (module.q_proj, module.k_proj, module.v_proj))
    kappa, alpha = module.kappa.exp() / module.kappa.exp().sum(), module.alpha.exp() / module.alpha.exp().sum()
    expected = torch.zeros(T, D).double()
    for h in range(H):
        scores = (queries[:, h] @ keys[:, h].T / math.sqrt(K)).masked_fill(~allowed, -math.inf)
        head = kappa[h] * scores.softmax(-1) @ values[:, h] @ module.out_proj.weight[:, h * K : (h + 1) * K].T
        expected += alpha[h] * module.network(head + module.out_proj.bias if bias else head)
    assert_close(module(x[None], x[None], allowed, NO_POSITION)[0], expected)
