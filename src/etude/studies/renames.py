"""Config keys and groups that were renamed: old names are refused in input and converted in old runs."""

from pathlib import Path
from typing import Any

from etude.errors import UserError

KEYS = {
    "budget.rate": "budget.lr_factor",
    "budget.valid_every": "budget.val_every",
    "budget.max_pieces": "budget.max_tokens",
    "decoding.max_extra": "decoding.max_len_offset",
    "model.kernel": "model.backend",
}
LOGGER_KEYS = {f"logger.{key}": f"logger.wandb.{key}" for key in ("mode", "project", "entity")}
GROUPS = {"model/kernel": "model/backend"}
VALUES = {"model/kernel=explicit": "model/backend=eager"}
TARGETS = {
    "etude.model.kernel.Explicit": "etude.model.backend.Eager",
    "etude.model.kernel.Sdpa": "etude.model.backend.Sdpa",
}
_ALSO_OWN = "model.kernel"  # was a group, so never set to a value: such a one is a key of a model of the user's own
_ONLY_MODEL = "etude.model.transformer.Transformer"  # the only model at first, when configs did not name it


def renamed(key: str) -> str | None:
    """Return the present name of a renamed key or group; None if `key` was not renamed."""
    for old, new in (KEYS | LOGGER_KEYS | GROUPS).items():
        if key == old or key.startswith(f"{old}."):
            return new + key.removeprefix(old)
    return None


def refuse_old_name(file: Path, where: str, key: str) -> None:
    """Check that a key in a study's file is not an old name.

    Raises:
        UserError: `key` was renamed.
    """
    if key != _ALSO_OWN and (now := renamed(key)):
        raise UserError(f"{file}: {where}: {key} was renamed to {now}: write {now} there")


def with_new_names(config: dict[str, Any]) -> dict[str, Any]:
    """Convert the keys and choices in the config of an old run to the present names."""
    for old, new in KEYS.items():
        (section, key), (_, today) = old.split("."), new.split(".")
        held = config.get(section)
        if isinstance(held, dict) and key in held and str(held.get("_target_", "etude.")).startswith("etude."):
            config = config | {section: {today if name == key else name: value for name, value in held.items()}}
    config = _with_parts(config)
    choices = dict(config.get("choices", {}))
    for old, new in GROUPS.items():
        if old in choices:
            value = choices.pop(old)
            choices[new] = VALUES.get(f"{old}={value}", f"{new}={value}").partition("=")[2]
    return config | {"choices": choices} if "choices" in config else config


def override_of_today(override: str) -> str:
    """Convert an override from an old run to the present names."""
    key, equals, value = VALUES.get(override, override).partition("=")
    bare = key.lstrip("+~")
    now = renamed(bare) if bare != _ALSO_OWN else None
    return f"{key.removesuffix(bare)}{now or bare}{equals}{value}"


def with_groups_of_today(config: dict[str, Any]) -> dict[str, Any]:
    """Convert the config of an old run, and add the groups that did not exist then, with their only possible values.

    At that time every task was translation, and every model an encoder and a decoder of attention. The result is for
    tables, not for resuming the run.
    """
    config, added = dict(with_new_names(config)), {}
    if "task" not in config:
        config["task"] = {"_target_": "etude.tasks.translation.Translation"}
        added["task"] = "translation"
    model = config.get("model")
    if isinstance(model, dict) and "encoder" not in model and model.get("_target_", _ONLY_MODEL) == _ONLY_MODEL:
        module = "etude.model.transformer.Transformer"
        config["model"] = model | {"_target_": "etude.model.encoder_decoder.EncoderDecoder"}
        for stack in ("encoder", "decoder"):
            part = {"_target_": module + stack.title(), "_partial_": True, "n_layers": model.get("n_layers")}
            config["model"][stack] = part
            added[f"model/{stack}"] = "transformer"
        backend = model.get("backend")
        if isinstance(backend, dict) and (now := TARGETS.get(str(backend.get("_target_")))):
            config["model"]["backend"] = backend | {"_target_": now}
    return config | {"choices": added | config.get("choices", {})}


def _with_parts(config: dict[str, Any]) -> dict[str, Any]:
    """Convert a config from the time of a single `logger`, no callbacks, and fewer flags of the trainer."""
    if "trainer" in config:
        config = config | {"trainer": {"compile": False} | config["trainer"]}
    logger = config.get("logger")
    if isinstance(logger, dict) and "_target_" in logger:
        name = str(logger["_target_"]).rpartition(".")[2]
        kept = {key: value for key, value in logger.items() if key != "_partial_"}
        tensorboard = {"_target_": "lightning.pytorch.loggers.TensorBoardLogger", "name": name, "version": ""}
        today = {"wandb": {"wandb": kept}, "tensorboard": {"tensorboard": tensorboard}}
        config = config | {"logger": today.get(name, {})}
    if "trainer" in config and "callbacks" not in config:
        flags = {"gradient_clip_val": None, "limit_train_batches": None, "fast_dev_run": False}
        config = config | {"callbacks": {}, "trainer": flags | config["trainer"]}
        if "choices" in config:
            config["choices"] = {"callbacks": "none"} | config["choices"]
    return config
