"""Rows share what they read of their sentence, and each reads what it would read with a copy of its own."""

import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from etude.model.state import SourceRows


@settings(max_examples=100, deadline=None)
@given(data=st.data(), sentences=st.integers(1, 5), length=st.integers(1, 3))
def test_every_row_reads_its_own_sentence_wherever_it_has_been_moved(data, sentences, length):
    copies, mask = torch.arange(sentences * 4.0).view(sentences, 2, 2), torch.arange(sentences * 2).view(-1, 2) % 3 > 0
    source, keys, masks = SourceRows(copies, mask), copies, mask
    for _ in range(3):
        chosen = st.lists(st.integers(0, len(copies) - 1), min_size=1, max_size=7)
        rows = torch.tensor(data.draw(chosen))
        copies, masks = copies[rows], masks[rows]  # as if each row had its own
        left = source.reorder(rows)
        keys = keys if left is None else keys[left]
        assert keys.equal(source.memory)
        assert len(keys) == len({copy.flatten()[0].item() for copy in copies})
        x = torch.randn(len(rows), length, 3)
        folded = source.fold(x)
        assert source.unfold(folded).equal(x)
        read = source.unfold(folded[..., :2] + source.memory.sum(dim=1, keepdim=True))
        assert read.equal(x[..., :2] + copies.sum(dim=1, keepdim=True))
        seen = source.unfold(source.mask[:, None].expand(-1, folded.size(1), -1))
        assert seen.equal(masks[:, None].expand(-1, length, -1))


def test_rows_of_one_sentence_that_change_places_move_nothing():
    source = SourceRows(torch.randn(2, 3, 4), torch.ones(2, 3, dtype=torch.bool))
    source.reorder(torch.tensor([0, 0, 1, 1]))
    memory, x = source.memory, torch.randn(4, 1, 4)
    assert source.reorder(torch.tensor([1, 0, 3, 3])) is None
    assert source.memory is memory
    assert source.fold(x).data_ptr() == x.data_ptr(), "a full grid of rows is a view of them"
