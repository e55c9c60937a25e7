"""A decoder's mask: each position sees itself and what came before, and only the whole mask knows that of itself."""

import pytest
import torch

from etude.model.mask import CausalMask, causal_mask

CPU = torch.device("cpu")


@pytest.mark.parametrize(("length", "start"), [(1, 0), (5, 0), (1, 4), (3, 4)])
def test_a_position_sees_itself_and_all_before_it(length, start):
    mask = causal_mask(length, start, CPU)
    expected = [[column <= start + row for column in range(start + length)] for row in range(length)]
    assert mask.tolist() == expected


def test_only_a_mask_without_earlier_positions_is_known_by_its_type():
    assert isinstance(causal_mask(5, 0, CPU), CausalMask)
    assert not isinstance(causal_mask(5, 2, CPU), CausalMask)


@pytest.mark.parametrize(
    "change",
    [
        lambda mask: mask & mask.triu(-2),
        lambda mask: mask[2:],
        lambda mask: ~mask,
        lambda mask: mask[None, None],
        torch.clone,
    ],
)
def test_what_is_made_of_it_is_a_mask_like_any_other(change):
    assert not isinstance(change(causal_mask(5, 0, CPU)), CausalMask)
