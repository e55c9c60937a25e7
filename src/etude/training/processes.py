"""What the processes that train one run tell each other beside their gradients. A process alone tells itself."""

import time
from typing import TypeVar

import torch
from lightning.pytorch.plugins.environments import TorchElasticEnvironment
from torch import Tensor, distributed

Said = TypeVar("Said")


def broadcast_from_rank0(value: Said) -> Said:
    """What the first process says, in all of them: it alone knows where a run stands, for it has the run's lock."""
    if not TorchElasticEnvironment.detect():
        return value
    if not distributed.is_initialized():
        distributed.init_process_group()  # Lightning finds it made
    box = [value]
    distributed.broadcast_object_list(box, src=0, device=torch.device("cpu"))
    return box[0]


def all_gather_floats(value: Tensor | float, device: torch.device) -> list[float]:
    """A figure of every process, in the order of their ranks."""
    if not distributed.is_initialized():
        return [float(value)]
    own = torch.tensor([float(value)], dtype=torch.float64, device=device)
    everyones = [torch.empty_like(own) for _ in range(distributed.get_world_size())]
    distributed.all_gather(everyones, own)
    return [float(one) for one in everyones]


def full_tensor(value: Tensor) -> Tensor:
    """Gather a tensor of which each process holds a shard (`training.sharded`); return any other as it is."""
    joined: Tensor = value.full_tensor() if hasattr(value, "full_tensor") else value
    return joined


class Poll:
    """Whether a flag is up in any process, asked about once in `seconds`: whoever asks waits for all.

    Every process counts the same steps and hears the same times, so that all ask after the same step.
    """

    def __init__(self, seconds: float = 1.0) -> None:
        self.seconds = seconds
        self._every = self._steps = 1  # steps between two askings; and since the last one
        self._asked_at = time.monotonic()

    def __call__(self, flag: bool, device: torch.device) -> bool:
        """After every step. A process alone is told at once."""
        if not distributed.is_initialized():
            return flag
        if self._steps < self._every:
            self._steps += 1
            return False
        return self.now(flag, device)

    def now(self, flag: bool, device: torch.device) -> bool:
        """Without waiting for the time to ask."""
        if not distributed.is_initialized():
            return flag
        took = max(all_gather_floats(time.monotonic() - self._asked_at, device))
        often = self.seconds * self._steps / max(took, 1e-6)
        self._every = max(1, min(int(often), 2 * self._steps))  # the steps behind us may have been uncommonly quick
        self._steps, self._asked_at = 1, time.monotonic()
        return any(all_gather_floats(float(flag), device))
