"""What relative schemes add to the scores, against loops that follow their papers."""

import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.testing import assert_close

from etude.model.position import T5, Alibi, Position, Shaw
from etude.model.position.relative import alibi_slopes
from etude.model.scale import SqrtDk

SCHEMES = {
    "shaw": lambda causal: Shaw(causal, d_k=4, clip=2).for_layers(2),
    "t5": lambda causal: T5(causal, heads=3, buckets=8, max_distance=12).for_layers(2),
}
SPANS = {"start": st.integers(0, 30), "length": st.integers(1, 12)}


def drawn(position: Position) -> Position:
    """In float64, with parameters that are not zero."""
    generator = torch.Generator().manual_seed(3)
    position.double()
    for parameter in position.parameters():
        parameter.data.normal_(generator=generator)
    return position


def queries(length: int) -> torch.Tensor:
    return torch.randn(2, 3, length, 4, dtype=torch.float64, generator=torch.Generator().manual_seed(length))


# ALiBi


def test_eight_heads_have_the_slopes_that_the_paper_prints():
    assert alibi_slopes(8) == [1 / 2, 1 / 4, 1 / 8, 1 / 16, 1 / 32, 1 / 64, 1 / 128, 1 / 256]


def test_sixteen_heads_have_the_slopes_that_the_paper_prints():
    assert_close(alibi_slopes(16), [2 ** (-n / 2) for n in range(1, 17)])


@pytest.mark.parametrize(
    ("heads", "exponents"),
    [(1, [8]), (3, [4, 8, 2]), (6, [2, 4, 6, 8, 1, 3]), (12, [1, 2, 3, 4, 5, 6, 7, 8, 0.5, 1.5, 2.5, 3.5])],
)
def test_other_numbers_of_heads_borrow_from_twice_as_many(heads, exponents):
    assert_close(alibi_slopes(heads), [2.0**-n for n in exponents])


@given(heads=st.integers(1, 40))
def test_any_number_of_heads_has_slopes_of_its_own(heads):
    assert len(set(alibi_slopes(heads))) == heads
    assert all(0 < slope < 1 for slope in alibi_slopes(heads))


@given(**SPANS)
@settings(max_examples=20, deadline=None)
def test_alibi_falls_with_the_distance(start, length):
    bias = Alibi(False, heads=3).score_bias(queries(length), start + length, start)
    for head, slope in enumerate([1 / 16, 1 / 256, 1 / 4]):
        for i in range(length):
            for j in range(start + length):
                assert bias[head, i, j].item() == -slope * abs(start + i - j)


# T5


def bucket_by_hand(offset: int, causal: bool, buckets: int, max_distance: int) -> int:
    """Half of the buckets for exact distances, half logarithmic up to max_distance; each direction has its own."""
    first = 0
    if not causal:
        buckets //= 2
        first = buckets if offset > 0 else 0
    distance = max(-offset, 0) if causal else abs(offset)
    exact = buckets // 2
    if distance < exact:
        return first + distance
    # A bucket more for each time that the distance has grown by the common ratio. In whole numbers, free of rounding.
    steps = buckets - exact
    grown = sum(distance**steps * exact**n >= exact**steps * max_distance**n for n in range(1, steps))
    return first + exact + grown


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize(("buckets", "max_distance"), [(32, 128), (4, 3), (8, 12), (32, 17), (64, 1000), (20, 320)])
def test_t5_puts_each_offset_into_its_bucket(causal, buckets, max_distance):
    offsets = range(-2 * max_distance - 3, 2 * max_distance + 4)
    found = T5(causal, heads=1, buckets=buckets, max_distance=max_distance).bucket(torch.tensor(list(offsets)))
    assert found.tolist() == [bucket_by_hand(offset, causal, buckets, max_distance) for offset in offsets]


def test_t5_in_the_published_setting_has_the_buckets_of_its_formula():
    """32 buckets, 128 positions: 16 for each direction, of which 8 are exact."""
    found = T5(False, heads=1, buckets=32, max_distance=128).bucket(-torch.arange(200))
    for distance in (n for n in range(8, 200) if n not in (8, 16, 32, 64, 128)):  # there the logarithm is whole
        assert found[distance] == min(8 + int(math.log(distance / 8) / math.log(128 / 8) * 8), 15)
    assert found[[8, 16, 32, 64, 128]].tolist() == [8, 10, 12, 14, 15]


@given(**SPANS)
@settings(max_examples=20, deadline=None)
@pytest.mark.parametrize("causal", [False, True])
def test_t5_adds_the_number_of_its_head_and_bucket(causal, start, length):
    position = drawn(SCHEMES["t5"](causal))
    bias, table = position.score_bias(queries(length), start + length, start), position.table.detach().numpy()
    for i in range(length):
        for j in range(start + length):
            bucket = bucket_by_hand(j - start - i, causal, 8, 12)
            assert bias[:, i, j].tolist() == table[:, bucket].tolist()


def test_t5_starts_by_favouring_no_offset():
    assert not SCHEMES["t5"](False).score_bias(queries(5), 5, 0).any()


@pytest.mark.parametrize("buckets", [0, 2, 6])
def test_t5_refuses_buckets_that_cannot_be_halved_twice(buckets):
    with pytest.raises(ValueError, match=f"a multiple of 4, not {buckets}"):
        T5(False, heads=2, buckets=buckets, max_distance=128)


def test_t5_refuses_a_distance_that_exact_buckets_already_reach():
    with pytest.raises(ValueError, match="32 buckets need a max_distance above 16, not 16"):
        T5(True, heads=2, buckets=32, max_distance=16)


# Shaw


@given(**SPANS)
@settings(max_examples=20, deadline=None)
@pytest.mark.parametrize("causal", [False, True])
def test_shaw_adds_the_vector_of_the_offset_to_the_key(causal, start, length):
    layer = drawn(SCHEMES["shaw"](causal)).at_layer(1)
    asked, keys = queries(length), queries(start + length + 100)[:, :, : start + length]
    scaled, _ = SqrtDk(d_k=4)(asked, keys)
    scores = scaled @ keys.mT + layer.score_bias(scaled, start + length, start)
    q, k, a = asked.numpy(), keys.numpy(), layer.table.detach().numpy()
    expected = np.empty(scores.shape)
    for b, h, i, j in np.ndindex(*scores.shape):
        offset = max(-2, min(2, j - (start + i)))
        expected[b, h, i, j] = q[b, h, i] @ (k[b, h, j] + a[2 + offset]) / math.sqrt(4)
    assert_close(scores.detach().numpy(), expected)


def test_shaw_gives_each_layer_vectors_of_its_own():
    position = SCHEMES["shaw"](False)
    assert not torch.equal(position.at_layer(0).table, position.at_layer(1).table)
    assert sum(p.numel() for p in position.parameters()) == 2 * (2 * 2 + 1) * 4


def test_shaw_refuses_to_tell_nothing_apart():
    with pytest.raises(ValueError, match="clip=0"):
        Shaw(False, d_k=4, clip=0)
