"""The flags of Lightning's Trainer: most are handed on as they are; some étude sets itself."""

from collections.abc import Collection

from etude.config.signature import signature
from etude.errors import UserError, did_you_mean

_STEPS, _VALIDATION, _TEST = "budget.max_steps", "budget.val_every", "budget.bleu_sentences"
_INSTEAD = {
    "accumulate_grad_batches": "trainer.micro_batches",
    "barebones": None,
    "callbacks": "callbacks",
    "check_val_every_n_epoch": _VALIDATION,
    "default_root_dir": "runs_dir",
    "enable_checkpointing": "callbacks=best_checkpoint",
    "enable_model_summary": "etude show",
    "enable_progress_bar": None,
    "limit_predict_batches": _TEST,
    "limit_test_batches": _TEST,
    "logger": "logger",
    "max_epochs": _STEPS,
    "max_steps": _STEPS,
    "max_time": "hydra.launcher.timeout",
    "min_epochs": _STEPS,
    "min_steps": _STEPS,
    "num_sanity_val_steps": _VALIDATION,
    "overfit_batches": "trainer.limit_train_batches",
    "plugins": None,
    "precision": "precision",
    "reload_dataloaders_every_n_epochs": None,
    "strategy": "trainer.devices",
    "use_distributed_sampler": None,
    "val_check_interval": _VALIDATION,
}
"""Flags that étude sets, and what to say in their place."""


def flag_mistake(key: str, own: Collection[str]) -> UserError | None:
    """What is wrong with a key of `trainer`; None where it is one of étude's `own` or a flag that is handed on."""
    others = signature("lightning.pytorch.trainer.trainer.Trainer").keywords.keys() - _INSTEAD.keys()
    if key in own or key in others:
        return None
    if key in _INSTEAD:
        way_out = f"say {_INSTEAD[key]} instead" if _INSTEAD[key] else "leave it out"
        return UserError(f"trainer.{key} is set by étude itself: {way_out}")
    return UserError(f"trainer.{key} is no flag of the trainer; {did_you_mean(key, [*own, *sorted(others)])}")
