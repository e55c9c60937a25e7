"""Convert errors of Hydra and OmegaConf to one sentence each; `unknown.py` does so for names that do not exist."""

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from traceback import extract_tb
from typing import Any

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
from etude.config.sweepers import no_plugin, other_sweeper
from etude.config.unknown import find_line, group_names, missing_option, unknown_group, unknown_key
from etude.errors import UserError, chain
from etude.files import disk_mistake
from etude.paths import folders_of
from etude.store.own_parts import blame
from etude.study.arm_names import is_arm
from etude.study.study import study_names
from etude.yaml_file import not_yaml

_LOCATING = re.compile(r"Error locating target '([^']+)'")
_LEFT_OUT = re.compile("Hydra (launcher|sweeper) is not configured")
_NO_PLUGIN = re.compile(r"(?:Unknown plugin class :|Invalid plugin) '([^']+)'")
_READING = ("", "Error resolving interpolation ")
_COMPLETION = "tab completion is there for bash, fish and zsh, as in etude -sc install=bash"
_ON_FLAGS = {  # how a ValueError of Hydra's begins -> what it means
    "Only one of --run": "-m, --cfg, --info and the like do not go together: leave out all but one",
    "The --resolve flag": "--resolve goes with --cfg, as in --cfg job --resolve: leave it out",
    "No completion plugin": _COMPLETION,
    "Expecting one subcommand": _COMPLETION,
}


def explain(error: BaseException) -> UserError | None:
    """Convert an error of composition or of the disk to a UserError; None if it is neither."""
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
            return other_sweeper(str(cause.missing_cfg_file)) or missing_option(cause)
        if isinstance(cause, OverrideParseException):
            return _no_override(cause)
        if isinstance(cause, OmegaConfBaseException) and "is not in struct" in str(cause):
            return other_sweeper(str(cause.full_key)) or unknown_key(cause)
        if isinstance(cause, RuntimeError) and (match := _NO_PLUGIN.match(str(cause))):
            return no_plugin(match[1])
        if isinstance(cause, RuntimeError) and (match := _LEFT_OUT.fullmatch(str(cause))):
            return UserError(f"hydra.{match[1]} is null, and there is none: say hydra/{match[1]}=NAME, or leave it out")
        if isinstance(cause, UnicodeDecodeError) and (file := _not_text()):
            return UserError(f"{file} is not UTF-8 text: save it as UTF-8")
        if isinstance(cause, ValueError) and str(cause).startswith("Invalid defaults list"):
            return UserError(str(cause))
        if _is_no_name_of_a_file(cause):
            if where := find_line(lambda line: line.count("${") > line.count("}")):
                return UserError(f"{where}: `${{` is never closed: write }} after it")
            return UserError(
                "a config group takes the name of one of its files, such as logger=none, or a list of such names, and "
                f"no number, true, false, null or ${{...}} ({', '.join(group_names())})"
            )
        for start, sentence in _ON_FLAGS.items():
            if isinstance(cause, ValueError) and str(cause).startswith(start):
                return UserError(sentence)
    if isinstance(error, HydraException) and not isinstance(error, InstantiationException):
        return unknown_group(error)
    if isinstance(error, OmegaConfBaseException):
        return UserError(f"{error.full_key or 'the config'}: {str(error).splitlines()[0]}")
    return disk_mistake(error)


@contextmanager
def explained(*kinds: type[Exception]) -> Iterator[None]:
    """Turn errors of these kinds into a UserError within the context, if `explain` can."""
    try:
        yield
    except kinds as error:
        if mistake := explain(error):
            raise mistake from error
        raise


def explain_own_data(error: BaseException, config: Mapping[str, Any]) -> UserError | None:
    """Name class, file and line of an error in a dataset or task of the user's; None if `explain` can or it is none."""
    where = blame(error, {section: config.get(section) for section in ("data", "task")})
    if explain(error) is None and where.startswith(" in "):
        return UserError(f"the data or the task fails{where}: {type(error).__name__}: {' '.join(str(error).split())}")
    return None


def _not_text() -> Path | None:
    """Find the first config file that is not UTF-8, as Python's error does not name it."""
    for file in (file for folder in folders_of("conf") for file in sorted(folder.rglob("*.yaml"))):
        try:
            file.read_text(encoding="utf-8")
        except UnicodeDecodeError:
            return file
        except OSError:
            continue
    return None


def _is_no_name_of_a_file(error: BaseException) -> bool:
    """Return whether the error is Hydra's for a config group whose value is not the name of a file."""
    if isinstance(error, ValueError) and str(error).startswith("Config group override "):
        return True
    if isinstance(error, TypeError):  # an item of a list of choices
        return Path(extract_tb(error.__traceback__)[-1].filename).name == "defaults_list.py"
    return isinstance(error, ConfigCompositionException) and str(error).partition("'")[0] in _READING


def missing_target(error: BaseException) -> str | None:
    """Return the `_target_` that could not be imported, if that caused the error."""
    found = (_LOCATING.match(str(cause)) for cause in chain(error) if isinstance(cause, InstantiationException))
    return next((match[1] for match in found if match), None)


def _no_override(error: OverrideParseException) -> UserError:
    """Make the error for an override that Hydra's grammar cannot parse: it lacks the key, or needs quotes."""
    if error.override in study_names():
        return UserError(f"{error.override} is a study: `etude sweep {error.override}` runs all of its arms")
    meant = "run" if Path(error.override).is_dir() else "experiment" if is_arm(error.override) else ""
    if meant:
        return UserError(f"{error.override!r} is not an override; did you mean {meant}={error.override}?")
    key, equals, value = error.override.partition("=")
    hint = f', such as  "{key}={quote(value)}"' if equals and key and value[:1] not in "[{'\"(" else ""
    return UserError(
        f"{error.override!r} is not an override: write key=value or group=name, and quote special characters twice, "
        f"for the shell and for Hydra{hint} ({str(error).splitlines()[0]})"
    )


def _not_imported(target: str, error: InstantiationException) -> UserError:
    """Make the error for a `_target_` that does not exist, or whose module raises an error on import."""
    try:
        signature(target)
    except UserError as mistake:
        return mistake
    _, *from_hydra = chain(error)
    cause = (from_hydra[1:] or from_hydra or [error])[0]  # Hydra's own ImportError does not give the reason
    return not_imported(target, cause)
