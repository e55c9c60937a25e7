"""Multi-head latent attention against equations 9 to 19 of its paper."""

import math

import pytest
import torch
from torch.testing import assert_close

from etude.model.backend import Eager
from etude.model.cache import SelfAttentionCache
from etude.model.latent import LatentAttention
from etude.model.position import Rotary
from etude.model.scale import Dk, SqrtDk

from .conftest import drawn, jitter

H, K, C, L, V = 2, 4, 3, 5, 2


def attention(scale: type[SqrtDk | Dk] = SqrtDk) -> LatentAttention:
    torch.manual_seed(5)
    sizes = {"d_model": 6, "heads": H, "d_k": K, "d_v": V, "content": C, "latent": L}
    return jitter(LatentAttention(scale(d_k=K), Eager(dropout=0.0), False, **sizes, bias=False, eps=1e-6).double())


@pytest.mark.parametrize(("scale", "size"), [(SqrtDk, math.sqrt(C + K)), (Dk, C + K)])
def test_keys_and_values_come_from_the_latent_and_one_rotated_key_is_shared(scale, size):
    module, x, rope = attention(scale), drawn(5, 6), Rotary(True, d_k=K, base=100.0).double()
    latent = module.down_proj(x)
    latent = module.norm.weight * latent / (latent.square().mean(-1, keepdim=True) + 1e-6).sqrt()
    shared = rope.rotate(module.rotated_proj(x)[None, None], 0)[0, 0]
    own, values = module.k_proj(latent).unflatten(-1, (H, C)), module.v_proj(latent).unflatten(-1, (H, V))
    queries = module.q_proj(x).unflatten(-1, (H, C + K))
    heads = []
    for h in range(H):
        rotated = rope.rotate(queries[None, None, :, h, C:], 0)[0, 0]
        scores = (queries[:, h, :C] @ own[:, h].T + rotated @ shared.T) / size
        heads.append(scores.masked_fill(torch.ones(5, 5).triu(1).bool(), -math.inf).softmax(-1) @ values[:, h])
    found = module(x[None], x[None], torch.ones(5, 5, dtype=torch.bool).tril(), rope)[0]
    assert_close(found, module.out_proj(torch.cat(heads, dim=-1)))


def test_the_cache_keeps_the_latent_and_the_shared_key_alone():
    module, cache, x = attention(), SelfAttentionCache(), drawn(1, 3, 6)
    module(x, x, torch.ones(3, 3, dtype=torch.bool), Rotary(True, d_k=K, base=100.0).double(), cache)
    keys, latents = cache.read(lambda: (torch.empty(1, 1, 0, K), torch.empty(1, 1, 0, L)))
    assert keys.shape == (1, 1, 3, K)
    assert latents.shape == (1, 1, 3, L)
