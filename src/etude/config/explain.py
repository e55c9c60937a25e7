"""Hydra's and OmegaConf's errors, told as one sentence with the nearest valid name."""

import re
from collections.abc import Iterable
from pathlib import Path

from hydra.errors import HydraException, InstantiationException, MissingConfigException, OverrideParseException
from omegaconf import DictConfig
from omegaconf.errors import OmegaConfBaseException

from etude.errors import UserError, did_you_mean
from etude.paths import shipped

_NOT_IN_DEFAULTS = re.compile(r"Could not (?:override|delete) '([^']+)'")


def explain(error: BaseException) -> UserError | None:
    """The sentence for an error of composition, or None where this is no mistake in a config."""
    for cause in chain(error):
        if isinstance(cause, UserError):
            return cause
        if isinstance(cause, MissingConfigException) and cause.options is not None:
            return _missing_option(cause)
        if isinstance(cause, OverrideParseException):
            if Path(cause.override).is_dir():
                return UserError(f"{cause.override!r} is no override; did you mean run={cause.override}?")
            return UserError(
                f"{cause.override!r} is no override: write key=value or group=name, and quote special characters "
                f"({str(cause).splitlines()[0]})"
            )
        if isinstance(cause, OmegaConfBaseException) and "is not in struct" in str(cause):
            return _unknown_key(cause)
        if isinstance(cause, ValueError) and str(cause).startswith("Config group override must be"):
            return UserError(
                f"a config group takes the name of one of its files, not a number ({', '.join(_groups())})"
            )
    if isinstance(error, HydraException) and not isinstance(error, InstantiationException):
        return _unknown_group(error)
    if isinstance(error, OmegaConfBaseException):
        return UserError(f"{error.full_key or 'the config'}: {str(error).splitlines()[0]}")
    return None


def chain(error: BaseException | None) -> list[BaseException]:
    """The error and all that it came from, the nearest first."""
    chain = []
    while error is not None and error not in chain:
        chain.append(error)
        error = error.__cause__ or error.__context__
    return chain


def _missing_option(error: MissingConfigException) -> UserError:
    """`model/position=rop`: the group is there, the option is not."""
    missing = str(error.missing_cfg_file)
    options = [str(option) for option in error.options or []]
    group = max((group for group in [*_groups(), "experiment"] if missing.startswith(f"{group}/")), key=len, default="")
    name = missing.removeprefix(f"{group}/")
    return UserError(f"{group}={name}: there is no {name!r} in the group {group}; {did_you_mean(name, options)}")


def _unknown_key(error: OmegaConfBaseException) -> UserError:
    if "/" in str(error.full_key):
        return UserError(f"{error.full_key} is not a config group; {did_you_mean(str(error.full_key), _groups())}")
    parent = error.parent_node
    known = [str(key) for key in parent] if isinstance(parent, DictConfig) else []
    section = str(error.full_key).rpartition(".")[0] or "the config"
    return no_such_key(str(error.full_key), section, known)


def no_such_key(key: str, section: str, known: Iterable[str]) -> UserError:
    """The sentence for a key that its section does not have."""
    if section == "model.position" and "cross" in key:
        return UserError(
            f"{key} does not exist: source and target have no offset from each other, so that every position scheme "
            "leaves attention from decoder to encoder alone; leave it out"
        )
    return UserError(f"{key} is not a key of {section}; {did_you_mean(key.rpartition('.')[2], known)}")


def _unknown_group(error: HydraException) -> UserError:
    first = str(error).splitlines()[0]
    match = _NOT_IN_DEFAULTS.search(first)
    if match and "defaults list" in str(error):
        return UserError(f"{match[1]} is not a config group; {did_you_mean(match[1], _groups())}")
    return UserError(first)


def _groups() -> list[str]:
    """Every config group that a person can override."""
    root = shipped("conf")
    return sorted(path.relative_to(root).as_posix() for path in root.rglob("*") if path.is_dir())
