"""Check that callbacks find what they need, and that only one of them decides with which weights a run ends."""

import re
from collections.abc import Mapping
from typing import Any

from etude.errors import UserError, did_you_mean
from etude.store.tested_weights import best_callbacks, check_tested, tested_weights
from etude.study.study import value_at

Config = Mapping[str, Any]

_MONITORED = ("val_loss", "val_perplexity")
_NOT_THE_BEST = (  # settings of ModelCheckpoint by which it saves at other moments, or elsewhere
    *("every_n_train_steps", "every_n_epochs", "train_time_interval", "save_on_train_epoch_end"),
    *("save_last", "dirpath"),
)


def check_callbacks(config: Config) -> None:
    """Check that monitored metrics exist, and that one part keeps the weights that are tested.

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
    check_tested(config)
    if tested_weights(config) == "best":
        _keeps_the_best(config)
    ending = re.compile(r"\.(EMA|\w*WeightAverag\w*|EarlyStopping|Timer)$")
    others = [name for name, target in parts.items() if ending.search(target)]
    both = "averaging.checkpoints and callbacks.{0} both decide with which weights the run ends: say "
    if value_at(config, "averaging.checkpoints") and others:
        way_out = "averaging.checkpoints=0, or leave {0} out of callbacks=[...]"
        raise UserError((both + way_out).format(others[0]))
    if value_at(config, "averaging.checkpoints") and config["weights"] == "auto" and best_callbacks(config):
        raise UserError((both + "weights=best or weights=average").format(best_callbacks(config)[0]))


def _keeps_the_best(config: Config) -> None:
    """Check that one callback keeps the checkpoint of the best validation, where Lightning's would not.

    Raises:
        UserError: it would keep another one, none, or two callbacks keep one each.
    """
    name, *others = best_callbacks(config)
    best = config["callbacks"][name]
    if others:
        raise UserError(
            f"callbacks.{name} and callbacks.{others[0]} each keep a best checkpoint, and one can be tested: call it "
            "best_checkpoint, or say weights=last"
        )
    steps, val_every = value_at(config, "budget.max_steps"), value_at(config, "budget.val_every")
    if steps < val_every and not value_at(config, "trainer.fast_dev_run"):
        raise UserError(
            f"callbacks.{name} would see no validation in budget.max_steps={steps}: say budget.val_every={steps}"
        )
    if not str(best["_target_"]).endswith(".ModelCheckpoint"):
        return
    wrong = [key for key in _NOT_THE_BEST if best.get(key) is not None and best.get(key) is not False]
    wrong += ["monitor"] * (best.get("monitor") is None) + ["save_top_k"] * (best.get("save_top_k") == 0)
    wrong += ["filename"] * bool(re.search("^(last|previous)$|/", str(best.get("filename"))))
    if wrong:
        raise UserError(
            f"callbacks.{name}.{wrong[0]}: tested is the checkpoint of the best validation, and this would keep "
            "another, or not in the run's folder: leave it as it is by default, or say weights=last"
        )
    averages = [str(part["_target_"]) for part in config["callbacks"].values()]
    if best.get("save_weights_only") and any(one.endswith(".EMA") or "WeightAverag" in one for one in averages):
        raise UserError(
            f"callbacks.{name}.save_weights_only=true would keep the weights without their average, which is what was "
            "validated: leave it out"
        )
