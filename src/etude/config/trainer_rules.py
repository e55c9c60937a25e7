"""What `trainer.strategy=fsdp`, with which each process holds a shard of the model, and CUDA graphs cannot train.

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


def check_trainer(config: Mapping[str, Any]) -> None:
    """Check that the settings of `trainer` fit each other and the optimizer.

    Raises:
        UserError: they do not.
    """
    if value_at(config, "trainer.limit_val_batches") is not None:
        raise UserError(
            "trainer.limit_val_batches would validate the shortest sentences alone, for batches are sorted by length, "
            "and with 0 write no checkpoint: leave it out"
        )
    _shards_suffice(config)
    _graphs_hold_a_whole_step(config)


def _shards_suffice(config: Mapping[str, Any]) -> None:
    """Check that nothing in a config with `trainer.strategy=fsdp` needs the full weights."""
    if value_at(config, "trainer.strategy") != "fsdp":
        return
    optimizer = value_at(config, "optimizer._target_")
    if mode := value_at(config, "trainer.compile"):
        raise UserError(
            f"trainer.compile={str(mode).lower()} joins the layers, whose weights trainer.strategy=fsdp gathers one by "
            "one: say trainer.compile=false, or trainer.strategy=ddp"
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


def _graphs_hold_a_whole_step(config: Mapping[str, Any]) -> None:
    """Check that no gradient outlives the CUDA graph that computed it: the next replay writes over its memory."""
    if value_at(config, "trainer.compile") != "reduce-overhead":
        return
    for key in ("devices", "micro_batches", "num_nodes"):
        if (value_at(config, f"trainer.{key}") or 1) != 1:
            raise UserError(
                f"trainer.compile=reduce-overhead records the step of one device, whole, and trainer.{key} shares it "
                f"out: say trainer.{key}=1, or trainer.compile=true"
            )
