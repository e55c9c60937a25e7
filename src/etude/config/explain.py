"""Hydra's and OmegaConf's errors, told as one sentence; `unknown.py` has those of names that do not exist."""

import re
from pathlib import Path
from traceback import extract_tb

from hydra.errors import (
    ConfigCompositionException,
    HydraException,
    InstantiationException,
    MissingConfigException,
    OverrideParseException,
)
from omegaconf.errors import OmegaConfBaseException
from yaml import MarkedYAMLError
from yaml.reader import ReaderError

from etude.config.quoting import quote
from etude.config.signature import not_imported, signature
from etude.config.unknown import group_names, missing_option, unknown_group, unknown_key
from etude.errors import UserError, chain
from etude.files import disk_mistake
from etude.paths import folders_of
from etude.studies.study import arm_names
from etude.yaml_file import not_yaml

_LOCATING = re.compile(r"Error locating target '([^']+)'")
_READING = ("", "Error resolving interpolation ")


def explain(error: BaseException) -> UserError | None:
    """The sentence for an error of composition or of the disk, or None where this is neither."""
    for cause in chain(error):
        if isinstance(cause, UserError):
            return cause
        if isinstance(cause, MarkedYAMLError) and cause.problem_mark:
            return not_yaml(cause, cause.problem_mark.name)
        if isinstance(cause, ReaderError):
            return not_yaml(cause, cause.name)
        if isinstance(cause, InstantiationException) and (match := _LOCATING.match(str(cause))):
            return _not_imported(match[1], cause)
        if isinstance(cause, MissingConfigException) and cause.options is not None:
            return missing_option(cause)
        if isinstance(cause, OverrideParseException):
            return _no_override(cause)
        if isinstance(cause, OmegaConfBaseException) and "is not in struct" in str(cause):
            return unknown_key(cause)
        if isinstance(cause, UnicodeDecodeError) and (file := _not_text()):
            return UserError(f"{file} is not UTF-8 text: write it anew")
        if isinstance(cause, ValueError) and str(cause).startswith("Invalid defaults list"):
            return UserError(str(cause))
        if _is_no_name_of_a_file(cause):
            return UserError(
                "a config group takes the name of one of its files, such as logger=none, or a list of such names, and "
                f"no number, true, false, null or ${{...}} ({', '.join(group_names())})"
            )
        if isinstance(cause, ValueError) and str(cause).startswith("Only one of --run"):
            return UserError("-m, --cfg, --info and the like do not go together: leave out all but one")
        if isinstance(cause, ValueError) and str(cause).startswith("The --resolve flag"):
            return UserError("--resolve goes with --cfg, as in --cfg job --resolve: leave it out")
    if isinstance(error, HydraException) and not isinstance(error, InstantiationException):
        return unknown_group(error)
    if isinstance(error, OmegaConfBaseException):
        return UserError(f"{error.full_key or 'the config'}: {str(error).splitlines()[0]}")
    return disk_mistake(error)


def _not_text() -> Path | None:
    """The first config file that is no text: Python does not say which one it was."""
    for file in (file for folder in folders_of("conf") for file in sorted(folder.rglob("*.yaml"))):
        try:
            file.read_text(encoding="utf-8")
        except UnicodeDecodeError:
            return file
        except OSError:
            continue
    return None


def _is_no_name_of_a_file(error: BaseException) -> bool:
    """Whether Hydra, looking for the files of config groups, has met something else than their names."""
    if isinstance(error, ValueError) and str(error).startswith("Config group override "):
        return True
    if isinstance(error, TypeError):  # of the items of a list
        return Path(extract_tb(error.__traceback__)[-1].filename).name == "defaults_list.py"
    return isinstance(error, ConfigCompositionException) and str(error).partition("'")[0] in _READING


def missing_target(error: BaseException) -> str | None:
    """The `_target_` that cannot be imported, where an error is about one."""
    found = (_LOCATING.match(str(cause)) for cause in chain(error) if isinstance(cause, InstantiationException))
    return next((match[1] for match in found if match), None)


def _no_override(error: OverrideParseException) -> UserError:
    """What Hydra's grammar cannot read: the value of a key that was left out, or one that needs quotes."""
    meant = "run" if Path(error.override).is_dir() else "experiment" if error.override in arm_names() else ""
    if meant:
        return UserError(f"{error.override!r} is no override; did you mean {meant}={error.override}?")
    key, equals, value = error.override.partition("=")
    hint = f', such as  "{key}={quote(value)}"' if equals and key and value[:1] not in "[{'\"(" else ""
    return UserError(
        f"{error.override!r} is no override: write key=value or group=name, and quote special characters twice, "
        f"for the shell and for Hydra{hint} ({str(error).splitlines()[0]})"
    )


def _not_imported(target: str, error: InstantiationException) -> UserError:
    """A `_target_` that is not there, or whose module ends in an error of its own."""
    try:
        signature(target)
    except UserError as mistake:
        return mistake
    _, *from_hydra = chain(error)
    cause = (from_hydra[1:] or from_hydra or [error])[0]  # Hydra's own ImportError says nothing
    return not_imported(target, cause)
