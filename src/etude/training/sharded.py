"""Fully sharded data parallel training (FSDP, Zhao et al. 2023): each process holds a shard of the model.

Weights, gradients and optimizer state are split along their first dimension, one shard per process. The weights of a
layer are gathered for its forward pass and again for its backward pass, and freed after each.
"""

from collections.abc import Iterator, Mapping
from inspect import signature
from typing import Any

import torch
from lightning.pytorch.callbacks import WeightAveraging
from lightning.pytorch.strategies import DDPStrategy
from lightning_utilities import apply_to_collection
from torch import Tensor, nn

from etude.errors import UserError


class FullySharded(DDPStrategy):
    """DDP's processes, each with a shard of the model and its optimizer state. Checkpoints hold full tensors."""

    def model_to_device(self) -> None:
        """Shard the model layer by layer, so that no device ever holds all of it."""
        from torch.distributed.device_mesh import init_device_mesh

        mesh = init_device_mesh(self.root_device.type, (self.world_size,))
        for model in self._models():
            shard(model, mesh)
        super().model_to_device()  # buffers

    def configure_ddp(self) -> None:
        """Wrap nothing: the sharded layers average their gradients themselves."""

    def save_checkpoint(self, checkpoint: dict[str, Any], filepath: Any, storage_options: Any = None) -> None:
        """Save one file of full tensors, which are gathered one by one on rank 0."""
        from torch.distributed.tensor import DTensor

        gathered: dict[int, Tensor | None] = {}  # a checkpoint has tied weights under several names: gather them once

        def gather(shard: DTensor) -> Tensor | None:
            storage = shard.to_local().untyped_storage()._cdata
            if storage not in gathered:
                tensor = shard.full_tensor()  # a collective: every process takes part
                gathered[storage] = tensor.cpu() if self.is_global_zero else None
            return gathered[storage]

        super().save_checkpoint(apply_to_collection(checkpoint, DTensor, gather), filepath, storage_options)

    def load_optimizer_state_dict(self, checkpoint: Mapping[str, Any]) -> None:
        """Load this process's shard of a state of full tensors."""
        states = []
        for optimizer, state in zip(self.optimizers, checkpoint["optimizer_states"], strict=True):
            weights = [weight for group in optimizer.param_groups for weight in group["params"]]
            own = {
                n: {key: _shard_like(weights[n], value) for key, value in values.items()}
                for n, values in state["state"].items()
            }
            states.append(state | {"state": own})
        super().load_optimizer_state_dict({"optimizer_states": states})

    def training_step(self, *args: Any, **kwargs: Any) -> Any:
        """Compute the loss.

        Raises:
            UserError: the model uses a weight of a layer without calling the layer, so that the weight is not gathered.
        """
        try:
            return super().training_step(*args, **kwargs)
        except RuntimeError as error:
            if "DTensor" not in str(error):
                raise
            raise UserError(
                "trainer.strategy=fsdp gathers the weights of a layer when it is called, and this model uses one "
                f"without calling its layer: say trainer.strategy=ddp ({error})"
            ) from error

    def _models(self) -> Iterator[nn.Module]:
        """Yield the trained model, and the averages of it that callbacks keep."""
        module: Any = self.lightning_module
        yield module.model
        for callback in module.trainer.callbacks:
            average: Any = getattr(callback, "_average_model", None)
            if isinstance(callback, WeightAveraging) and average is not None:
                yield average.module.model


def shard(model: nn.Module, mesh: Any) -> None:
    """Shard the weights of a model over the processes of `mesh`, in place, layer by layer.

    Raises:
        UserError: a weight is a scalar, or this PyTorch cannot shard checkpoints.
    """
    from torch.distributed.fsdp import fully_shard
    from torch.distributed.tensor import distribute_tensor

    if "src_data_rank" not in signature(distribute_tensor).parameters:  # of PyTorch 2.6, which fails on CPUs besides
        raise UserError(
            f"trainer.strategy=fsdp needs a newer PyTorch than {torch.__version__}: say trainer.strategy=ddp"
        )
    for name, weight in model.named_parameters():
        if not weight.dim():
            raise UserError(f"trainer.strategy=fsdp cannot shard {name}, which is a scalar: say trainer.strategy=ddp")
    stacks = (getattr(model, stack, nn.Module()) for stack in ("encoder", "decoder"))
    lists = (child for stack in stacks for child in stack.children() if isinstance(child, nn.ModuleList))
    for module in [*(layer for layers in lists for layer in layers), model]:
        fully_shard(module, mesh=mesh, reshard_after_forward=True)  # frees the gathered weights


def _shard_like(weight: Any, value: Any) -> Any:
    """Shard a full tensor like a weight of its shape; return anything else, such as a step count, as it is."""
    from torch.distributed.tensor import distribute_tensor

    if not isinstance(value, Tensor) or value.shape != weight.shape:
        return value
    return distribute_tensor(value, weight.device_mesh, weight.placements, src_data_rank=None)
