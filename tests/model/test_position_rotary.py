"""Rotary positions against a turn of complex numbers."""

import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.testing import assert_close

from etude.model.position import NO_POSITION, PartialRotary, Rotary, RotaryInSomeLayers


def rope(d_k: int = 8, base: float = 10000.0) -> Rotary:
    return Rotary(False, d_k=d_k, base=base).double()


def by_hand(x: np.ndarray, position: int, base: float) -> np.ndarray:
    """Each pair of components, as one complex number, turned by its angle."""
    d_k = len(x)
    turned = []
    for i in range(d_k // 2):
        number = complex(x[2 * i], x[2 * i + 1]) * np.exp(1j * position * base ** (-2 * i / d_k))
        turned += [number.real, number.imag]
    return np.array(turned)


@settings(max_examples=40, deadline=None)
@given(
    pairs=st.integers(1, 6), start=st.integers(0, 400), base=st.sampled_from([100.0, 10000.0]), seed=st.integers(0, 9)
)
def test_each_pair_turns_by_its_angle(pairs, start, base, seed):
    x = np.random.default_rng(seed).normal(size=(3, 2 * pairs))
    turned = rope(2 * pairs, base).rotate(torch.tensor(x)[None, None], start)[0, 0]
    expected = np.stack([by_hand(row, start + t, base) for t, row in enumerate(x)])
    assert_close(turned.numpy(), expected, atol=1e-6, rtol=1e-6)


def test_late_positions_keep_their_digits():
    x = torch.tensor([[[[1.0, 0.0]]]])
    assert_close(
        Rotary(False, d_k=2, base=10000.0).rotate(x, 99_999)[0, 0, 0, 0].item(), math.cos(99_999), atol=1e-6, rtol=0
    )


def test_half_precision_in_half_precision_out():
    x = torch.zeros(1, 1, 3, 8, dtype=torch.bfloat16)
    assert Rotary(False, d_k=8, base=10000.0).rotate(x, 0).dtype == torch.bfloat16


def test_a_table_that_grew_in_inference_still_serves_training():
    position = Rotary(False, d_k=8, base=10000.0)
    with torch.inference_mode():
        position.rotate(torch.zeros(1, 1, 300, 8), 0)
    x = torch.randn(1, 1, 200, 8, requires_grad=True)
    position.rotate(x, 0).square().sum().backward()
    assert_close(x.grad, 2 * x.detach())


def test_an_odd_d_k_is_refused():
    with pytest.raises(ValueError, match="d_k must be even, not 5"):
        Rotary(False, d_k=5, base=10000.0)


def test_a_share_of_the_components_turns_as_if_there_were_no_others():
    x, partial = (
        torch.randn(2, 3, 9, 8, dtype=torch.float64),
        PartialRotary(False, d_k=8, base=100.0, share=0.5).double(),
    )
    turned = partial.rotate(x, 3)
    assert torch.equal(turned[..., 4:], x[..., 4:])
    expected = [by_hand(row, 3 + t, 100.0) for t, row in enumerate(x[0, 0, :, :4].numpy())]
    assert_close(turned[0, 0, :, :4].numpy(), np.stack(expected), atol=1e-6, rtol=1e-6)


@pytest.mark.parametrize("share", [0.0, 0.1, 1.5])
def test_a_share_without_a_pair_or_above_one_is_refused(share):
    with pytest.raises(ValueError, match=r"say model\.position\.share=1\.0"):
        PartialRotary(False, d_k=8, base=100.0, share=share)


def test_layers_turn_as_the_pattern_says():
    position = RotaryInSomeLayers(True, d_k=8, base=100.0, pattern=["rope", "none"])
    assert [position.at_layer(n) is NO_POSITION for n in range(5)] == [False, True, False, True, False]
    x = torch.randn(1, 1, 3, 8)
    assert torch.equal(position.at_layer(2).rotate(x, 1), Rotary(True, d_k=8, base=100.0).rotate(x, 1))
