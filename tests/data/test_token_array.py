from array import array
from itertools import accumulate, chain
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from etude.data.splits import TokenArray
from etude.data.tokenizer import PAD


def written(folder: Path, lines: list[list[int]], vocab_size: int) -> TokenArray:
    flat, ends = array("i", chain(*lines)), array("q", accumulate(map(len, lines)))
    TokenArray.write(folder / "side", flat, ends, vocab_size)
    return TokenArray(folder / "side")


some_lines = st.lists(st.lists(st.integers(4, 99), min_size=1, max_size=9), min_size=1, max_size=12)


@settings(deadline=None, max_examples=50)
@given(some_lines, st.data())
def test_lines_come_back_and_pad_to_a_rectangle(lines: list[list[int]], data: st.DataObject) -> None:
    with TemporaryDirectory() as folder:
        pieces = written(Path(folder), lines, vocab_size=100)
        assert [line.tolist() for line in map(pieces.__getitem__, range(len(pieces)))] == lines
        assert pieces.lengths.tolist() == [len(line) for line in lines]
        rows = data.draw(st.lists(st.integers(0, len(lines) - 1), min_size=1))
        width = max(len(lines[row]) for row in rows)
        expected = [lines[row] + [PAD] * (width - len(lines[row])) for row in rows]
        padded = pieces.padded(np.array(rows))
        assert padded.tolist() == expected
        assert padded.dtype == np.int64


@pytest.mark.parametrize(("vocab_size", "width"), [(65_536, 2), (65_537, 4)])
def test_pieces_take_two_bytes_where_the_vocabulary_allows_it(tmp_path: Path, vocab_size: int, width: int) -> None:
    pieces = written(tmp_path, [[vocab_size - 1]], vocab_size)
    assert pieces[0].tolist() == [vocab_size - 1]
    assert pieces[0].itemsize == width
