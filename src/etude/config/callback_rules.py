"""Check that callbacks find what they need, and that only one of them decides with which weights a run ends."""

import re
from collections.abc import Mapping
from typing import Any

from etude.errors import UserError, did_you_mean
from etude.studies.study import value_at

Config = Mapping[str, Any]

_MONITORED = ("val_loss", "val_perplexity")


def check_callbacks(config: Config) -> None:
    """Check that monitored metrics exist, best_checkpoint sees a validation, and only one part chooses the weights.

    Raises:
        UserError: this is not so.
    """
    parts = {name: str(part["_target_"]) for name, part in (config.get("callbacks") or {}).items()}
    ours = all(target.startswith(("etude.", "lightning.")) for target in parts.values())  # others may log more metrics
    for name in parts:
        monitored = value_at(config, f"callbacks.{name}.monitor")
        if ours and monitored not in (None, *_MONITORED):
            near = did_you_mean(str(monitored), _MONITORED)
            raise UserError(f"callbacks.{name}.monitor={monitored}: no such metric is logged; {near}")
        if parts[name].endswith(".GradientAccumulationScheduler"):
            raise UserError(
                f"callbacks.{name} would change after how many batches the weights do, and a step of étude is one "
                "update: leave it out (trainer.micro_batches accumulates gradients)"
            )
    _best_is_the_best(config)
    steps, val_every = value_at(config, "budget.max_steps"), value_at(config, "budget.val_every")
    if "best_checkpoint" in parts and steps < val_every and not value_at(config, "trainer.fast_dev_run"):
        raise UserError(
            f"callbacks.best_checkpoint would see no validation in budget.max_steps={steps}: "
            f"say budget.val_every={steps}"
        )
    ending = re.compile(r"\.(EMA|\w*WeightAverag\w*|EarlyStopping|Timer)$")
    others = [name for name, target in parts.items() if name == "best_checkpoint" or ending.search(target)]
    averages = any(target.endswith(".EMA") or "WeightAverag" in target for target in parts.values())
    if averages and value_at(config, "callbacks.best_checkpoint.save_weights_only"):
        raise UserError(
            "callbacks.best_checkpoint.save_weights_only=true would keep the weights without their average, which is "
            "what was validated: leave it out"
        )
    if value_at(config, "averaging.checkpoints") and others:
        raise UserError(
            f"averaging.checkpoints and callbacks.{others[0]} both decide with which weights the run ends: say "
            f"averaging.checkpoints=0, or leave {others[0]} out of callbacks=[...]"
        )


def _best_is_the_best(config: Config) -> None:
    """Check that Lightning's callback keeps one checkpoint, that of the best validation, as best.ckpt."""
    best = value_at(config, "callbacks.best_checkpoint") or {}
    if str(best.get("_target_")).startswith("lightning."):
        unused = ("every_n_train_steps", "every_n_epochs", "train_time_interval", "save_last", "dirpath")
        wrong = [key for key in unused if best.get(key) is not None]
        wrong += [key for key, value in (("filename", "best"), ("save_top_k", 1)) if best.get(key, value) != value]
        if wrong or best.get("monitor") is None:
            raise UserError(
                f"callbacks.best_checkpoint.{(*wrong, 'monitor')[0]}: the run ends with the weights of best.ckpt, the "
                "one best validation, and this would make it another: leave it as it is, or give the callback another "
                "name"
            )
