"""A composed config as plain data: resolved, and checked."""

from collections.abc import Mapping, Sequence
from typing import Any

from omegaconf import DictConfig, OmegaConf
from omegaconf.errors import OmegaConfBaseException

from etude.config.check import check
from etude.config.precision import choose_precision
from etude.config.rules import check_rules
from etude.config.task_rules import check_choices
from etude.errors import UserError


def resolve_valid(config: DictConfig) -> dict[str, Any]:
    """The resolved config, after every check.

    Raises:
        UserError: the config cannot run.
    """
    return check_and_resolve(without_hydra(config), config.hydra.runtime.choices, typed_overrides(config))


def resolve(config: DictConfig) -> dict[str, Any]:
    """The config as plain data: interpolations worked out, group choices in `choices`, Hydra's own node left out."""
    return _resolve(without_hydra(config), config.hydra.runtime.choices)


def as_written(config: DictConfig) -> dict[str, Any]:
    """The config as it is written, its interpolations still standing; Hydra's own node left out."""
    return OmegaConf.to_container(without_hydra(config))  # type: ignore[return-value]


def typed_overrides(config: DictConfig) -> list[str]:
    """The overrides that were typed for this run, letter by letter."""
    return OmegaConf.to_container(config.hydra.overrides.task)  # type: ignore[return-value]


def without_hydra(config: DictConfig) -> DictConfig:
    """A copy of the config without Hydra's own node."""
    return OmegaConf.masked_copy(config, [str(key) for key in config if key != "hydra"])


def check_and_resolve(own: DictConfig, choices: Mapping[str, Any], typed: Sequence[str]) -> dict[str, Any]:
    """The resolved config, after every check.

    Args:
        own: the config without Hydra's own node.
        choices: config group -> the file that was chosen, as Hydra's node has them.
        typed: the overrides.

    Raises:
        UserError: the config cannot run.
    """
    try:
        plain = _resolve(own, choices)
    except (OmegaConfBaseException, UserError):
        check(own)  # key by key, which finds the one that cannot be worked out
        raise
    check(plain)
    check_rules(plain)
    check_choices(plain, typed)
    return plain


def _resolve(own: DictConfig, choices: Mapping[str, Any]) -> dict[str, Any]:
    plain: dict[str, Any] = OmegaConf.to_container(own, resolve=True)  # type: ignore[assignment]
    if "precision" in plain:  # verbs that train nothing have none
        plain["precision"] = choose_precision(plain["precision"], (plain.get("trainer") or {}).get("accelerator", ""))
    return plain | {"choices": {k: v for k, v in sorted(choices.items()) if not k.startswith("hydra/")}}
