"""Convert a composed config to plain data: resolved, and checked."""

import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any

from omegaconf import DictConfig, OmegaConf, open_dict
from omegaconf.errors import OmegaConfBaseException

from etude.config.check import OF_HYDRA, check
from etude.config.precision import choose_precision
from etude.config.rules import check_choices, check_rules
from etude.errors import UserError, chain
from etude.files import typed_path
from etude.store.own_parts import hash_content
from etude.store.parent import find_parent

UNSAID = {"init_from": None, "budget.val_metrics": None, "budget.val_sentences": None, "tokenizer.shared": True}
"""Keys that a config does not have where they have this value and change nothing, as the runs of before lack them."""

_EXISTING = "etude.data.vocabularies.Existing"


def resolve_valid(config: DictConfig) -> dict[str, Any]:
    """Check a composed config completely and return it resolved.

    Raises:
        UserError: the config is not valid.
    """
    plain = resolve(config)
    check_resolved(plain, typed_overrides(config))
    return plain


def resolve(config: DictConfig) -> dict[str, Any]:
    """Return the config as plain data: interpolations resolved, group choices in `choices`, Hydra's node left out.

    Raises:
        UserError: a value cannot be worked out.
    """
    return resolve_plain(without_hydra(config), config.hydra.runtime.choices)


def as_written(config: DictConfig) -> dict[str, Any]:
    """Return the config as plain data with its interpolations unresolved, without Hydra's own node."""
    return OmegaConf.to_container(without_hydra(config))  # type: ignore[return-value]


def typed_overrides(config: DictConfig) -> list[str]:
    """Return the overrides that were typed for this run, verbatim."""
    return OmegaConf.to_container(config.hydra.overrides.task)  # type: ignore[return-value]


def without_hydra(config: DictConfig) -> DictConfig:
    """Return a copy of the config without Hydra's own node, what a search alone reads, and what is unsaid."""
    own = OmegaConf.masked_copy(config, [str(key) for key in config if key not in OF_HYDRA])
    for key, value in UNSAID.items():
        section, _, name = key.rpartition(".")
        node = OmegaConf.select(own, section) if section else own
        if isinstance(node, DictConfig) and name in node and node._get_node(name) == value:
            with open_dict(node):
                del node[name]
    return own


def check_resolved(plain: dict[str, Any], typed: Sequence[str]) -> None:
    """Check a resolved config completely, given the overrides.

    Raises:
        UserError: the config is not valid.
    """
    check(plain)
    check_rules(plain)
    check_choices(plain, typed)


def resolve_plain(own: DictConfig, choices: Mapping[str, Any]) -> dict[str, Any]:
    """Resolve a config, given without Hydra's own node, and the chosen option of each config group.

    Raises:
        UserError: a value cannot be worked out.
    """
    try:
        plain: dict[str, Any] = OmegaConf.to_container(own, resolve=True)  # type: ignore[assignment]
    except OmegaConfBaseException as error:
        if mistake := next((cause for cause in chain(error) if isinstance(cause, UserError)), None):
            raise mistake from error  # raised by one of étude's resolvers
        key, reason = error.full_key, str(error).splitlines()[0]
        nowhere = re.match("Interpolation key '(.+)' not found", reason)
        reason = f"it is that of {nowhere[1]}, and there is no such key" if nowhere else reason
        raise UserError(f"{key} cannot be worked out: {reason}; say {key}=...") from error
    if "precision" in plain:  # commands that do not train have none
        plain["precision"] = choose_precision(plain["precision"], (plain.get("trainer") or {}).get("accelerator", ""))
    if "init_from" in plain and isinstance(plain["runs_dir"], str):
        plain["init_from"] = find_parent(plain["init_from"], plain["runs_dir"])
    tokenizer = plain.get("tokenizer")
    if (
        isinstance(tokenizer, dict)
        and tokenizer.get("_target_") == _EXISTING
        and isinstance(tokenizer.get("file"), str)
    ):
        with suppress(OSError):  # what cannot be read is told by the tokenizer
            plain["tokenizer"] = {"sum": hash_content(typed_path(tokenizer["file"]))} | tokenizer
    return plain | {"choices": {k: v for k, v in sorted(choices.items()) if not k.startswith("hydra/")}}
