"""Lightweight and dynamic convolutions against PyTorch's own, and against their equation one number at a time."""

import pytest
import torch
from torch import Tensor
from torch.nn import functional as F
from torch.testing import assert_close

from etude.model.light_convolution import DynamicConvolution, LightweightConvolution
from etude.model.position import NO_POSITION

from .conftest import drawn, jitter

D, H, K, T = 6, 3, 5, 7
ALL, PAST = torch.ones(1, 1, 1, T, dtype=torch.bool), torch.ones(T, T, dtype=torch.bool).tril()


def convolution(kind: type, *, pointwise: bool = False) -> LightweightConvolution:
    torch.manual_seed(5)
    return jitter(kind(d_model=D, kernel=K, kernels=H, pointwise=pointwise, bias=True).double())


def channels(module: LightweightConvolution, x: Tensor) -> Tensor:
    value, gate = module.in_proj(x).chunk(2, dim=-1)
    return value / (1 + (-gate).exp())


@pytest.mark.parametrize("pointwise", [False, True])
@pytest.mark.parametrize(("mask", "pad"), [(ALL, (2, 2)), (PAST, (4, 0))], ids=["encoder", "decoder"])
def test_a_lightweight_convolution_is_pytorchs_of_kernels_that_sum_to_one(mask, pad, pointwise):
    module, x = convolution(LightweightConvolution, pointwise=pointwise), drawn(2, T, D)
    cache = module.start() if mask is PAST else None
    found = module(x, x, mask, NO_POSITION, *([cache] if cache else []))
    kernels = (module.weight.exp() / module.weight.exp().sum(1, keepdim=True)).repeat_interleave(D // H, dim=0)
    out = F.conv1d(F.pad(channels(module, x).mT, pad), kernels[:, None], groups=D).mT
    out = out @ module.pointwise.weight.T + module.pointwise.bias if pointwise else out
    assert_close(found, module.out_proj(out))


@pytest.mark.parametrize(("mask", "offset"), [(ALL, 2), (PAST, 4)], ids=["encoder", "decoder"])
def test_a_dynamic_convolution_makes_the_kernels_of_a_position_from_what_stands_there(mask, offset):
    module, x = convolution(DynamicConvolution), drawn(T, D)
    seen = channels(module, x)
    out = torch.zeros(T, D).double()
    for t in range(T):
        for d in range(D):
            kernel = module.kernel_proj(seen[t]).view(H, K)[d // (D // H)].softmax(0)
            out[t, d] = sum(kernel[j] * seen[s, d] for j in range(K) if 0 <= (s := t + j - offset) < T)
    cache = [module.start()] if mask is PAST else []
    assert_close(module(x[None], x[None], mask, NO_POSITION, *cache)[0], module.out_proj(out))


def test_the_cache_keeps_no_more_than_the_next_position_sees():
    module, cache = convolution(LightweightConvolution), convolution(LightweightConvolution).start()
    for length in (3, 4):
        x = drawn(1, length, D)
        module(x, x, torch.ones(1, 1, length, dtype=torch.bool), NO_POSITION, cache)
    assert cache.length == 7
    kept, _ = cache.read(lambda: (torch.empty(1, 1, 0, D), torch.empty(1, 1, 0, 0)))
    assert kept.shape == (1, 1, K - 1, D)


@pytest.mark.parametrize(("size", "sentence"), [({"kernel": 4}, "kernel=5"), ({"kernels": 4}, "kernels=6")])
def test_a_kernel_without_a_middle_and_kernels_that_do_not_divide_the_channels_are_refused(size, sentence):
    with pytest.raises(ValueError, match=rf"say model\.attention\.convolution\.{sentence}$"):
        LightweightConvolution(**{"d_model": D, "kernel": K, "kernels": H, "pointwise": False, "bias": True} | size)
