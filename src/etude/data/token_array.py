"""One side of a split as numbers: the tokens of every line, end to end in one memory-mapped array."""

from array import array
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt

from etude.data.tokenizer import PAD


class TokenArray:
    """The tokens of many lines: their pieces, and EOS where they end.

    Attributes:
        lengths: tokens in each line
    """

    def __init__(self, path: Path) -> None:
        """Map the files that `TokenArrayWriter` wrote to `path`; nothing is read before it is used."""
        self._flat: npt.NDArray[np.integer] = np.asarray(np.load(_flat_file(path), mmap_mode="r"))
        ends = np.load(_ends_file(path))
        self._starts = np.concatenate([[0], ends[:-1]])
        self.lengths = ends - self._starts

    def __len__(self) -> int:
        return len(self.lengths)

    def __getitem__(self, row: int) -> npt.NDArray[np.integer]:
        """The tokens of one line."""
        start = self._starts[row]
        return self._flat[start : start + self.lengths[row]]

    def padded(self, rows: npt.NDArray[np.integer]) -> npt.NDArray[np.int64]:
        """The lines `rows`, each filled up with PAD: (B, longest), int64."""
        lengths = self.lengths[rows][:, None]
        columns = np.arange(lengths.max())
        filled = np.full((len(rows), len(columns)), PAD, dtype=np.int64)
        held = columns < lengths
        filled[held] = self._flat[(self._starts[rows][:, None] + columns)[held]]
        return filled


class TokenArrayWriter:
    """Collects lines of tokens and writes them as `Pieces` reads them."""

    def __init__(self) -> None:
        self._flat = array("i")
        self._ends = array("q")

    def append(self, tokens: Sequence[int]) -> None:
        """Add one line."""
        self._flat.extend(tokens)
        self._ends.append(len(self._flat))

    def __len__(self) -> int:
        return len(self._ends)

    def write(self, path: Path, vocab_size: int) -> None:
        """Write two files: the tokens, 2 bytes each where the vocabulary allows it, and where each line ends."""
        dtype = np.uint16 if vocab_size <= 1 << 16 else np.int32
        np.save(_flat_file(path), np.asarray(self._flat, dtype=dtype))
        np.save(_ends_file(path), np.asarray(self._ends, dtype=np.int64))

    @property
    def total(self) -> int:
        """Tokens in all lines together."""
        return len(self._flat)


def _flat_file(path: Path) -> Path:
    return path.with_name(f"{path.name}.pieces.npy")


def _ends_file(path: Path) -> Path:
    return path.with_name(f"{path.name}.ends.npy")
