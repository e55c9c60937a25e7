"""What validation and CUDA graphs cannot do."""

from collections.abc import Mapping
from typing import Any

from etude.errors import UserError
from etude.studies.study import value_at


def check_trainer(config: Mapping[str, Any]) -> None:
    """Check that the settings of `trainer` fit each other.

    Raises:
        UserError: they do not.
    """
    if value_at(config, "trainer.limit_val_batches") is not None:
        raise UserError(
            "trainer.limit_val_batches would validate the shortest sentences alone, for batches are sorted by length, "
            "and with 0 write no checkpoint: leave it out"
        )
    _graphs_hold_a_whole_step(config)


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
