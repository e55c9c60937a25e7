"""Fully sharded data parallel training (FSDP, Zhao et al. 2023): each process holds a share of the model.

Weights, gradients and optimizer state are cut along their first dimension, a share for each process. The weights of a
layer are put together when it computes, forward and backward, and let go again.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from lightning.pytorch.callbacks import WeightAveraging
from lightning.pytorch.strategies import DDPStrategy
from lightning_utilities import apply_to_collection
from torch import Tensor, nn

from etude.errors import UserError


class FullySharded(DDPStrategy):
    """Processes as DDP has them, whose optimizer moves shares. Checkpoints hold whole tensors, as those of DDP do."""

    def model_to_device(self) -> None:
        """Shard the model, a layer at a time, so that no device ever holds it whole."""
        from torch.distributed.device_mesh import init_device_mesh

        mesh = init_device_mesh(self.root_device.type, (self.world_size,))
        for model in self._models():
            shard(model, mesh)
        super().model_to_device()  # what has no share

    def configure_ddp(self) -> None:
        """Wrap nothing: gradients are averaged while the layers give them."""

    def save_checkpoint(self, checkpoint: dict[str, Any], filepath: Any, storage_options: Any = None) -> None:
        """Save one file of whole tensors, which are put together one after another in the first process."""
        from torch.distributed.tensor import DTensor

        whole: dict[int, Tensor | None] = {}  # of tied weights a checkpoint holds one tensor under several names

        def gather(share: DTensor) -> Tensor | None:
            storage = share.to_local().untyped_storage()._cdata
            if storage not in whole:
                tensor = share.full_tensor()  # in every process, which waits for all others
                whole[storage] = tensor.cpu() if self.is_global_zero else None
            return whole[storage]

        super().save_checkpoint(apply_to_collection(checkpoint, DTensor, gather), filepath, storage_options)

    def load_optimizer_state_dict(self, checkpoint: Mapping[str, Any]) -> None:
        """Take the own share of a state of whole tensors."""
        states = []
        for optimizer, state in zip(self.optimizers, checkpoint["optimizer_states"], strict=True):
            weights = [weight for group in optimizer.param_groups for weight in group["params"]]
            own = {
                n: {key: _share_like(weights[n], value) for key, value in values.items()}
                for n, values in state["state"].items()
            }
            states.append(state | {"state": own})
        super().load_optimizer_state_dict({"optimizer_states": states})

    def training_step(self, *args: Any, **kwargs: Any) -> Any:
        """Compute the loss.

        Raises:
            UserError: the model uses a weight where only the shares of it are there.
        """
        try:
            return super().training_step(*args, **kwargs)
        except RuntimeError as error:
            if "DTensor" not in str(error):
                raise
            raise UserError(
                "trainer.strategy=fsdp puts the weights of a layer together when it is called, and this model uses one "
                f"without: say trainer.strategy=ddp ({error})"
            ) from error

    def _models(self) -> Iterator[nn.Module]:
        """What is trained, and the averages that callbacks keep of it."""
        module: Any = self.lightning_module
        yield module.model
        for callback in module.trainer.callbacks:
            average: Any = getattr(callback, "_average_model", None)
            if isinstance(callback, WeightAveraging) and average is not None:
                yield average.module.model


def shard(model: nn.Module, mesh: Any) -> None:
    """Leave each process of `mesh` its share of the weights, in place; they are put together layer by layer.

    Raises:
        UserError: a weight is a single number.
    """
    from torch.distributed.fsdp import fully_shard

    for name, weight in model.named_parameters():
        if not weight.dim():
            raise UserError(
                f"trainer.strategy=fsdp cannot cut {name}, which is a single number, into shares: "
                "say trainer.strategy=ddp"
            )
    stacks = (getattr(model, stack, nn.Module()) for stack in ("encoder", "decoder"))
    lists = (child for stack in stacks for child in stack.children() if isinstance(child, nn.ModuleList))
    for module in [*(layer for layers in lists for layer in layers), model]:
        fully_shard(module, mesh=mesh, reshard_after_forward=True)  # else shares would stand beside whole weights


def _share_like(weight: Any, value: Any) -> Any:
    """The share of a whole tensor that belongs to this share of a weight; what has another shape is for all."""
    from torch.distributed.tensor import distribute_tensor

    if not isinstance(value, Tensor) or value.shape != weight.shape:
        return value
    return distribute_tensor(value, weight.device_mesh, weight.placements, src_data_rank=None)
