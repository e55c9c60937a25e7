"""Communication between the processes of one run, apart from gradients; a single process talks to itself."""

import time
from typing import TypeVar

import torch
from lightning.pytorch.plugins.environments import TorchElasticEnvironment
from torch import Tensor, distributed

Value = TypeVar("Value")


def broadcast_from_rank0(value: Value) -> Value:
    """Return the value of rank 0 on every rank; only rank 0 holds the run's lock and so knows where the run stands."""
    if not TorchElasticEnvironment.detect():
        return value
    if not distributed.is_initialized():
        distributed.init_process_group(_backends())  # Lightning reuses it
    box = [value]
    distributed.broadcast_object_list(box, src=0, device=torch.device("cpu"))
    return box[0]


def leave_processes() -> None:
    """End the communication; call it in all processes."""
    if distributed.is_initialized():
        distributed.destroy_process_group()


def _backends() -> str:
    """Return what processes talk through. NCCL sends only what is on a GPU, and a flag or a path is not."""
    return "cpu:gloo,cuda:nccl" if torch.cuda.is_available() and distributed.is_nccl_available() else "gloo"


def all_gather_floats(value: Tensor | float, device: torch.device) -> list[float]:
    """Return the value of every process, in order of rank."""
    if not distributed.is_initialized():
        return [float(value)]
    own = torch.tensor([float(value)], dtype=torch.float64, device=device)
    everyones = [torch.empty_like(own) for _ in range(distributed.get_world_size())]
    distributed.all_gather(everyones, own)
    return [float(one) for one in everyones]


class Poll:
    """Asks about once in `seconds` whether a flag is set in any process; asking waits for all processes.

    Every process counts the same steps and receives the same times, so all of them ask after the same step.
    """

    def __init__(self, seconds: float = 1.0) -> None:
        self.seconds = seconds
        self._every = self._steps = 1  # steps between two questions; steps since the last one
        self._asked_at = time.monotonic()

    def __call__(self, flag: bool, device: torch.device) -> bool:
        """Call after every step. A single process gets its own flag at once."""
        if not distributed.is_initialized():
            return flag
        if self._steps < self._every:
            self._steps += 1
            return False
        return self.now(flag, device)

    def now(self, flag: bool, device: torch.device) -> bool:
        """Ask now, whatever the time."""
        if not distributed.is_initialized():
            return flag
        took = max(all_gather_floats(time.monotonic() - self._asked_at, device))
        often = self.seconds * self._steps / max(took, 1e-6)
        self._every = max(1, min(int(often), 2 * self._steps))  # the last steps may have been unusually fast
        self._steps, self._asked_at = 1, time.monotonic()
        return any(all_gather_floats(float(flag), device))
