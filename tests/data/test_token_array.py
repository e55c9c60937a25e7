from itertools import accumulate, chain
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from etude.data.token_array import TokenArray, TokenWriter
from etude.data.tokenizer import PAD


def written(folder: Path, lines: list[list[int]], vocab_size: int, chunk: int = 3) -> TokenArray:
    """The lines, written so many at a time."""
    with TokenWriter(folder / "side", vocab_size) as writer:
        for first in range(0, len(lines), chunk):
            some = lines[first : first + chunk]
            writer.extend(np.array([*chain(*some)], np.int32), np.array([*map(len, some)], np.int32))
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
        padded = pieces.pad_rows(np.array(rows))
        assert padded.tolist() == expected
        assert padded.dtype == np.int64


@pytest.mark.parametrize(("vocab_size", "width"), [(65_536, 2), (65_537, 4)])
def test_pieces_take_two_bytes_where_the_vocabulary_allows_it(tmp_path: Path, vocab_size: int, width: int) -> None:
    pieces = written(tmp_path, [[vocab_size - 1]], vocab_size)
    assert pieces[0].tolist() == [vocab_size - 1]
    assert pieces[0].itemsize == width


@pytest.mark.parametrize("chunk", [1, 7, 5000])
@pytest.mark.parametrize("vocab_size", [100, 100_000])
def test_a_stream_of_chunks_is_written_as_numpy_writes_the_whole(tmp_path: Path, chunk: int, vocab_size: int) -> None:
    lines = [[4 + n % 90] * (1 + n % 5) for n in range(5000)]
    written(tmp_path, lines, vocab_size, chunk)
    np.save(tmp_path / "flat.npy", np.array([*chain(*lines)], np.uint16 if vocab_size == 100 else np.int32))
    np.save(tmp_path / "ends.npy", np.array([*accumulate(map(len, lines))], np.int64))
    for own, whole in (("side.pieces.npy", "flat.npy"), ("side.ends.npy", "ends.npy")):
        assert (tmp_path / own).read_bytes() == (tmp_path / whole).read_bytes()
