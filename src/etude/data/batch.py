"""The batch that a training step takes."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch.nn import functional as F

from etude.data.tokenizer import BOS, PAD

Rows = npt.NDArray[np.int64]

Draw = tuple[int, int] | None
"""(seed, epoch) of a task's random choices; None for the fixed choice that all runs are evaluated on."""

EVALUATION: Draw = None


@dataclass  # not frozen: with precision=64-true Lightning copies a batch field by field
class Batch:
    """The input and the expected output of a model, padded on each side; the comments describe translation."""

    source: torch.Tensor  # (B, S) int64, tokens + EOS + PAD
    source_mask: torch.Tensor  # (B, S) bool, True where `source` is a token and not padding
    target_in: torch.Tensor  # (B, T) int64, BOS + tokens + PAD
    target_out: torch.Tensor  # (B, T) int64, `target_in` shifted left: tokens + EOS (none if the line was cut) + PAD
    target_tokens: int  # tokens of `target_out` that are not padding, EOS counted
    rows: Rows  # (B,) row numbers in the split, on the CPU
    step_tokens: int  # target tokens of the whole batch of the step, of which this may be a micro-batch
    micro_batch: int = 0  # index of this micro-batch in it

    def to(self, device: torch.device | str) -> "Batch":
        """Move the batch to `device`; the copy to a GPU is asynchronous.

        For a GPU the number of columns is padded to a multiple of eight, at which its tensor cores are fast.
        """
        device = torch.device(device)
        if device == self.source.device:
            return self
        if device.type != "cuda":
            return self._map(lambda tensor: tensor.to(device))
        padded = self.pad_columns(8) if self.source.device.type == "cpu" else self
        return padded._map(
            lambda tensor: (tensor.pin_memory() if tensor.device.type == "cpu" else tensor).to(
                device, non_blocking=True
            )
        )

    def pad_columns(self, multiple: int) -> "Batch":
        """Pad S and T to a multiple of `multiple`; results stay, but for experts, who are given padding."""
        empty = {torch.bool: False, torch.int64: PAD}
        return self._map(lambda tensor: F.pad(tensor, (0, -tensor.size(1) % multiple), value=empty[tensor.dtype]))

    def _map(self, function: Callable[[torch.Tensor], torch.Tensor]) -> "Batch":
        """Return a copy with `function` applied to every tensor."""
        tensors: dict[str, Any] = {
            name: function(value) for name, value in vars(self).items() if isinstance(value, torch.Tensor)
        }
        return replace(self, **tensors)


def make_batch(
    source: npt.NDArray[np.int64],
    target_out: npt.NDArray[np.int64],
    rows: Rows,
    target_in: npt.NDArray[np.int64] | None = None,
) -> Batch:
    """Make a batch of padded arrays, (B, S) and (B, T).

    Args:
        source, target_out: tokens, padded with PAD.
        rows: their row numbers in the split, (B,).
        target_in: by default `target_out` shifted right, with BOS in front.
    """
    if target_in is None:
        target_in = np.roll(target_out, 1, axis=1)
        target_in[:, 0] = BOS
        target_in[target_out == PAD] = PAD
    tokens = int((target_out != PAD).sum())
    return Batch(
        source=torch.from_numpy(source),
        source_mask=torch.from_numpy(source != PAD),
        target_in=torch.from_numpy(target_in),
        target_out=torch.from_numpy(target_out),
        target_tokens=tokens,
        rows=rows,
        step_tokens=tokens,
    )
