"""The tokens of one side of a split in two files, written as a stream and read as a memory map.

<name>.pieces.npy    the tokens of all lines, concatenated; 2 bytes each where the vocabulary allows it
<name>.ends.npy      where each line ends
"""

from pathlib import Path
from types import TracebackType
from typing import Any

import numpy as np
import numpy.typing as npt

from etude.data.tokenizer import PAD


class TokenArray:
    """The tokens of one side, all lines concatenated in one memory-mapped array, each with its EOS.

    Attributes:
        lengths: tokens in each line
    """

    def __init__(self, path: Path) -> None:
        """Memory-map the files that `TokenWriter` wrote; tokens are read when they are used."""
        self._flat: npt.NDArray[np.integer] = np.asarray(np.load(f"{path}.pieces.npy", mmap_mode="r"))
        ends = np.load(f"{path}.ends.npy")
        self._starts = np.concatenate([[0], ends[:-1]])
        self.lengths = ends - self._starts

    def __len__(self) -> int:
        return len(self.lengths)

    def __getitem__(self, row: int) -> npt.NDArray[np.integer]:
        """Return the tokens of one line."""
        start = self._starts[row]
        return self._flat[start : start + self.lengths[row]]

    def pad_rows(self, rows: npt.NDArray[np.integer]) -> npt.NDArray[np.int64]:
        """Return the lines `rows` padded with PAD to the longest: (B, longest), int64."""
        lengths = self.lengths[rows][:, None]
        columns = np.arange(lengths.max())
        padded = np.full((len(rows), len(columns)), PAD, dtype=np.int64)
        is_token = columns < lengths
        padded[is_token] = self._flat[(self._starts[rows][:, None] + columns)[is_token]]
        return padded


class TokenWriter:
    """Writes the files of a `TokenArray` chunk by chunk, keeping only the lengths of the lines in memory.

    Attributes:
        tokens: number of tokens written so far
    """

    def __init__(self, path: Path, vocab_size: int) -> None:
        self.tokens = 0
        self._path = path
        self._dtype = np.dtype(np.uint16 if vocab_size <= 1 << 16 else np.int32)
        self._lengths: list[npt.NDArray[np.int32]] = []

    def __enter__(self) -> "TokenWriter":
        self._file = Path(f"{self._path}.pieces.npy").open("wb")
        self._write_header()
        return self

    def extend(self, flat: npt.NDArray[np.int32], lengths: npt.NDArray[np.int32]) -> None:
        """Append lines, given their concatenated tokens and the length of each."""
        self._file.write(flat.astype(self._dtype).tobytes())
        self._lengths.append(lengths)
        self.tokens += len(flat)

    def __exit__(self, kind: type[BaseException] | None, error: Any, trace: TracebackType | None) -> None:
        with self._file:
            if kind is None:
                self._file.seek(0)
                self._write_header()  # the header is padded: a longer number does not move the tokens
                np.save(f"{self._path}.ends.npy", np.cumsum(np.concatenate(self._lengths), dtype=np.int64))

    def _write_header(self) -> None:
        shape = {"descr": self._dtype.str, "fortran_order": False, "shape": (self.tokens,)}
        np.lib.format.write_array_header_1_0(self._file, shape)
