"""What `trainer.strategy=fsdp` cannot train, by which each process holds a share of the model.

What only the model itself shows, such as a weight that is a single number, is refused in `training.sharded`.
"""

from collections.abc import Mapping
from typing import Any

from etude.errors import UserError
from etude.studies.study import value_at

_OPTIMIZERS = {
    "etude.training.optimizer.adam",
    "etude.training.optimizer.Muon",
    "torch.optim.Adam",
    "torch.optim.AdamW",
    "torch.optim.SGD",
}
"""Which are known to make of shares the update that they make of the whole."""


def check_sharding(config: Mapping[str, Any]) -> None:
    """See to it that nothing needs the model whole.

    Raises:
        UserError: something does.
    """
    if value_at(config, "trainer.strategy") != "fsdp":
        return
    optimizer = value_at(config, "optimizer._target_")
    if value_at(config, "trainer.compile"):
        raise UserError(
            "trainer.compile=true makes one piece of the layers, which trainer.strategy=fsdp puts together one by one: "
            "say trainer.compile=false, or trainer.strategy=ddp"
        )
    if value_at(config, "precision") == "16-mixed":
        raise UserError(
            "precision=16-mixed scales whole gradients, of which trainer.strategy=fsdp leaves each process a share: "
            "say precision=bf16-mixed, or trainer.strategy=ddp"
        )
    if optimizer not in _OPTIMIZERS:
        raise UserError(
            f"{optimizer} may need whole weights, of which trainer.strategy=fsdp leaves each process a share: "
            "say optimizer=adam, adamw, sgd or muon, or trainer.strategy=ddp"
        )
