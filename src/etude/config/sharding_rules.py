"""What `trainer.strategy=fsdp`, with which each process holds a shard of the model, cannot train.

What only the built model shows, such as a scalar weight, is refused in `training.sharded`.
"""

from collections.abc import Mapping
from typing import Any

from etude.errors import UserError
from etude.studies.study import value_at

# Optimizers known to compute the same update from shards as from full weights.
_OPTIMIZERS = {
    "etude.training.optimizer.adam",
    "etude.training.optimizer.Muon",
    "torch.optim.Adam",
    "torch.optim.AdamW",
    "torch.optim.SGD",
}


def check_sharding(config: Mapping[str, Any]) -> None:
    """Check that nothing in a config with `trainer.strategy=fsdp` needs the full weights.

    Raises:
        UserError: something does.
    """
    if value_at(config, "trainer.strategy") != "fsdp":
        return
    optimizer = value_at(config, "optimizer._target_")
    if value_at(config, "trainer.compile"):
        raise UserError(
            "trainer.compile=true joins the layers, whose weights trainer.strategy=fsdp gathers one by one: "
            "say trainer.compile=false, or trainer.strategy=ddp"
        )
    if value_at(config, "precision") == "16-mixed":
        raise UserError(
            "precision=16-mixed scales full gradients, of which trainer.strategy=fsdp leaves each process a shard: "
            "say precision=bf16-mixed, or trainer.strategy=ddp"
        )
    if optimizer not in _OPTIMIZERS:
        raise UserError(
            f"{optimizer} may need full weights, of which trainer.strategy=fsdp leaves each process a shard: "
            "say optimizer=adam, adamw, sgd or muon, or trainer.strategy=ddp"
        )
