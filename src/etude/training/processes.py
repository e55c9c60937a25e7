"""What the processes that train one run tell each other beside their gradients. A process alone tells itself."""

from typing import TypeVar

import torch
from lightning.pytorch.plugins.environments import TorchElasticEnvironment
from torch import Tensor, distributed

Said = TypeVar("Said")


def from_first(value: Said) -> Said:
    """What the first process says, in all of them: it alone knows where a run stands, for it has the run's lock."""
    if not TorchElasticEnvironment.detect():
        return value
    if not distributed.is_initialized():
        distributed.init_process_group()  # Lightning finds it made
    box = [value]
    distributed.broadcast_object_list(box, src=0, device=torch.device("cpu"))
    return box[0]


def gathered(value: Tensor | float, device: torch.device) -> list[float]:
    """A figure of every process, in the order of their ranks."""
    if not distributed.is_initialized():
        return [float(value)]
    own = torch.tensor([float(value)], dtype=torch.float64, device=device)
    everyones = [torch.empty_like(own) for _ in range(distributed.get_world_size())]
    distributed.all_gather(everyones, own)
    return [float(one) for one in everyones]


def any_of(flag: bool, device: torch.device) -> bool:
    """Whether the flag is up in any process."""
    return flag if not distributed.is_initialized() else any(gathered(float(flag), device))
