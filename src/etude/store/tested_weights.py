"""Which weights of a run are tested: those of its last step, those of its best validation, or an average."""

from collections.abc import Mapping
from typing import Any

from etude.errors import UserError

Config = Mapping[str, Any]

OF_THE_BEST = "best_checkpoint"  # the name in conf/callbacks; a callback of another class may have it, too


def best_callbacks(config: Config) -> list[str]:
    """Return the names of the callbacks that keep the best checkpoint: each ModelCheckpoint that monitors a metric.

    If one is called `best_checkpoint`, it is the only one.
    """
    parts = config.get("callbacks") or {}
    if OF_THE_BEST in parts:
        return [OF_THE_BEST]
    return [
        name
        for name, part in parts.items()
        if str(part.get("_target_")).endswith(".ModelCheckpoint") and part.get("monitor") is not None
    ]


def tested_weights(config: Config) -> str:
    """Return which weights a run tests: last, best or average.

    Args:
        config: the resolved config. One without `weights` was frozen when only the name of a callback decided.
    """
    asked = config.get("weights") or tested_by_name(config)
    if asked != "auto":
        return str(asked)
    return "best" if best_callbacks(config) and not _averaged(config) else tested_by_name(config)


def tested_by_name(config: Config) -> str:
    """Return which weights are tested if only a callback called `best_checkpoint` counts, as in earlier versions."""
    if _averaged(config):
        return "average"
    return "best" if OF_THE_BEST in (config.get("callbacks") or {}) else "last"


def check_tested(config: Config) -> None:
    """Check that a run keeps the weights that `weights` asks for.

    Raises:
        UserError: it does not, or there are no weights of that name.
    """
    tested = tested_weights(config)
    if tested not in ("last", "best", "average"):
        raise UserError(f"weights={tested}: say last, best or average")
    if tested == "best" and not best_callbacks(config):
        raise UserError("weights=best: no callback keeps the best checkpoint, as callbacks=best_checkpoint does")
    if tested == "average" and not _averaged(config):
        raise UserError("weights=average: none are kept to be averaged, as averaging.checkpoints=5 does")


def note_on_tested(config: Config) -> str:
    """Say which weights a run has tested; empty if no callback keeps the best checkpoint."""
    if not (keeping := best_callbacks(config)):
        return ""
    tested, kept = tested_weights(config), f"callbacks.{keeping[0]}"
    weights = {"best": f"best weights, kept by {kept}", "last": "last weights", "average": "average of checkpoints"}
    other = "last" if tested == "best" else "best"
    return f"tested are the {weights[tested]}; weights={other} tests the {weights[other]}"


def _averaged(config: Config) -> int:
    return int((config.get("averaging") or {}).get("checkpoints") or 0)
