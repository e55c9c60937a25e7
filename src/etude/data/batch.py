"""What a training step is given."""

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
"""Which draw of what a task leaves to chance: the seed and the epoch; None: the one that everybody is evaluated on."""

EVALUATION: Draw = None


@dataclass(frozen=True)
class Batch:
    """What a model is shown and what it is to say, padded to a rectangle on each side; of translation what follows."""

    source: torch.Tensor  # (B, S) int64, tokens + EOS + PAD
    source_mask: torch.Tensor  # (B, S) bool, True where `source` is a token and not padding
    target_in: torch.Tensor  # (B, T) int64, BOS + tokens + PAD
    target_out: torch.Tensor  # (B, T) int64, what follows `target_in`: tokens + EOS (none in a line that was cut) + PAD
    target_tokens: int  # those of `target_out` that are not padding, EOS counted
    rows: Rows  # (B,) of the split, on the CPU
    step_tokens: int  # the target tokens of the whole batch that this may be a part of
    micro_batch: int = 0  # which part of it this is

    def to(self, device: torch.device | str) -> "Batch":
        """The same batch on `device`; a GPU fetches it by itself, while the processor goes on.

        A GPU gets columns by eight, the sizes at which its tensor cores are fast.
        """
        if torch.device(device).type != "cuda":
            return self._each(lambda one: one.to(device))
        ready = self.padded(8) if self.source.device.type == "cpu" else self
        return ready._each(
            lambda one: (one.pin_memory() if one.device.type == "cpu" else one).to(device, non_blocking=True)
        )

    def padded(self, multiple: int) -> "Batch":
        """The same sentences in columns whose number `multiple` divides: to the model and the loss nothing is added."""
        empty = {torch.bool: False, torch.int64: PAD}
        return self._each(lambda one: F.pad(one, (0, -one.size(1) % multiple), value=empty[one.dtype]))

    def _each(self, change: Callable[[torch.Tensor], torch.Tensor]) -> "Batch":
        """The same with every tensor changed."""
        changed: dict[str, Any] = {
            name: change(one) for name, one in vars(self).items() if isinstance(one, torch.Tensor)
        }
        return replace(self, **changed)


def make_batch(
    source: npt.NDArray[np.int64],
    target_out: npt.NDArray[np.int64],
    rows: Rows,
    target_in: npt.NDArray[np.int64] | None = None,
) -> Batch:
    """The batch of these rectangles, (B, S) and (B, T).

    Args:
        source, target_out: tokens, filled up with PAD.
        rows: which of the split they are.
        target_in: `target_out` shifted right behind BOS if nothing is said.
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
