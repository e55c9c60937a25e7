"""The table of positions: the same rows however it grew, as each process of a run has its own."""

import pytest
import torch

from etude.model.position.base import GrowingTable


@pytest.mark.parametrize("lengths", [(127, 130), (130, 127), (129, 131)])
def test_tables_that_met_other_lengths_hold_the_same_rows(lengths: tuple[int, int]) -> None:
    def rows(count: int) -> torch.Tensor:
        return torch.arange(count, dtype=torch.float64)[:, None].sin()

    alone, *each = (GrowingTable(rows) for _ in range(3))
    for table, length in zip(each, lengths, strict=True):
        alone(0, length)
        table(0, length)
    for table in each:
        shared = min(len(table.filled), len(alone.filled))
        assert torch.equal(table.filled[:shared], alone.filled[:shared])


def test_a_table_that_grows_stays_where_it_is() -> None:
    assert GrowingTable(torch.zeros).to("meta")(500, 3).device.type == "meta"
