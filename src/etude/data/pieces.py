"""One side of a split as numbers: the pieces of every line, end to end in one memory-mapped array."""

from array import array
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt

from etude.data.tokenizer import EOS, PAD


class Pieces:
    """The pieces of many lines.

    Attributes:
        lengths: pieces in each line, EOS counted
    """

    def __init__(self, path: Path) -> None:
        """Map the files that `PiecesWriter` wrote to `path`; nothing is read before it is used."""
        self._flat: npt.NDArray[np.integer] = np.asarray(np.load(_flat_file(path), mmap_mode="r"))
        ends = np.load(_ends_file(path))
        self._starts = np.concatenate([[0], ends[:-1]])
        self.lengths = ends - self._starts + 1

    def __len__(self) -> int:
        return len(self.lengths)

    def __getitem__(self, row: int) -> npt.NDArray[np.integer]:
        """The pieces of one line, without BOS and EOS."""
        start = self._starts[row]
        return self._flat[start : start + self.lengths[row] - 1]

    def padded(self, rows: npt.NDArray[np.integer]) -> npt.NDArray[np.int64]:
        """The lines `rows`, each followed by EOS and filled up with PAD: (B, longest), int64."""
        lengths = self.lengths[rows][:, None]
        columns = np.arange(lengths.max())
        filled = np.full((len(rows), len(columns)), PAD, dtype=np.int64)
        held = columns < lengths - 1
        filled[held] = self._flat[(self._starts[rows][:, None] + columns)[held]]
        filled[columns == lengths - 1] = EOS
        return filled


class PiecesWriter:
    """Collects lines of pieces and writes them as `Pieces` reads them."""

    def __init__(self) -> None:
        self._flat = array("i")
        self._ends = array("q")

    def append(self, pieces: Sequence[int]) -> None:
        """Add one line."""
        self._flat.extend(pieces)
        self._ends.append(len(self._flat))

    def __len__(self) -> int:
        return len(self._ends)

    def write(self, path: Path, vocab_size: int) -> None:
        """Write two files: the pieces, 2 bytes each where the vocabulary allows it, and where each line ends."""
        dtype = np.uint16 if vocab_size <= 1 << 16 else np.int32
        np.save(_flat_file(path), np.asarray(self._flat, dtype=dtype))
        np.save(_ends_file(path), np.asarray(self._ends, dtype=np.int64))

    @property
    def total(self) -> int:
        """Pieces in all lines together."""
        return len(self._flat)


def _flat_file(path: Path) -> Path:
    return path.with_name(f"{path.name}.pieces.npy")


def _ends_file(path: Path) -> Path:
    return path.with_name(f"{path.name}.ends.npy")
