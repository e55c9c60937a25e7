"""Hydra's and OmegaConf's errors, told as one sentence with the nearest valid name."""

import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from traceback import extract_tb

from hydra.errors import (
    ConfigCompositionException,
    HydraException,
    InstantiationException,
    MissingConfigException,
    OverrideParseException,
)
from omegaconf import DictConfig
from omegaconf.errors import OmegaConfBaseException
from yaml import MarkedYAMLError
from yaml.reader import ReaderError

from etude.config.quoting import quote
from etude.config.schema import flag_mistake
from etude.config.signature import not_imported, signature
from etude.errors import UserError, chain, did_you_mean
from etude.files import disk_mistake
from etude.paths import folders_of, note_on_missing, shipped
from etude.studies.axes import axes
from etude.studies.renames import renamed
from etude.studies.study import arm_names, load_study, study_names
from etude.yaml_file import not_yaml

_NOT_IN_DEFAULTS = re.compile(r"Could not (?:override|delete) '([^']+)'")
_SEVERAL = re.compile(r"Ambiguous value for argument '(.+)'")
_LOCATING = re.compile(r"Error locating target '([^']+)'")
_NOT_LOADED = re.compile(r"Could not load '([^']+)/([^/']+)'")
_READING = ("", "Error resolving interpolation ")
_TWICE = re.compile(r"Multiple values for ([\w/]+)\.")


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
            return _missing_option(cause)
        if isinstance(cause, OverrideParseException):
            return _no_override(cause)
        if isinstance(cause, OmegaConfBaseException) and "is not in struct" in str(cause):
            return _unknown_key(cause)
        if isinstance(cause, UnicodeDecodeError) and (file := _not_text()):
            return UserError(f"{file} is not UTF-8 text: write it anew")
        if isinstance(cause, ValueError) and str(cause).startswith("Invalid defaults list"):
            return UserError(str(cause))
        if _is_no_name_of_a_file(cause):
            return UserError(
                "a config group takes the name of one of its files, such as logger=none, or a list of such names, and "
                f"no number, true, false, null or ${{...}} ({', '.join(_groups())})"
            )
        if isinstance(cause, ValueError) and str(cause).startswith("Only one of --run"):
            return UserError("-m, --cfg, --info and the like do not go together: leave out all but one")
        if isinstance(cause, ValueError) and str(cause).startswith("The --resolve flag"):
            return UserError("--resolve goes with --cfg, as in --cfg job --resolve: leave it out")
    if isinstance(error, HydraException) and not isinstance(error, InstantiationException):
        return _unknown_group(error)
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


def _missing_option(error: MissingConfigException) -> UserError:
    """`model/position=rop`: the group is there, the option is not."""
    missing = str(error.missing_cfg_file)
    options = [str(option) for option in error.options or []]
    group = max((group for group in [*_groups(), "experiment"] if missing.startswith(f"{group}/")), key=len, default="")
    name = missing.removeprefix(f"{group}/")
    if group == "experiment" and (study := name.partition("/")[0]) in study_names():
        try:
            baseline = load_study(study).baseline
        except UserError as error_in_it:
            return error_in_it
        if name == study:
            return UserError(
                f"{name} is a study: name one of its arms, such as experiment={name}/{baseline}, "
                f"or run them all with `etude sweep {name}`"
            )
    if same := [option for option in options if option.rpartition("/")[2] == name]:
        return UserError(f"{group}={name}: did you mean {' or '.join(f'{group}={one}' for one in sorted(same))}?")
    return _no_such_option(group, name, options)


def _no_such_option(group: str, name: str, options: Iterable[str]) -> UserError:
    roots, file = folders_of("conf"), f"{name}.yaml"
    elsewhere = [other for other in _groups() if any((root / other / file).is_file() for root in roots)]
    but = f", but there is in {' and in '.join(elsewhere)}" if 0 < len(elsewhere) <= 2 else ""
    study = ("experiments", f"{name.partition('/')[0]}/study.yaml")
    why = note_on_missing(*study if group == "experiment" else ("conf", f"{group}/{file}"))
    return UserError(
        f"{group}={name}: there is no {name!r} in the group {group}{but}; {did_you_mean(name, options)}{why}"
    )


def _unknown_key(error: OmegaConfBaseException) -> UserError:
    if "/" in str(error.full_key):
        return _no_such_group(str(error.full_key))
    parent = error.parent_node
    known = [str(key) for key in parent] if isinstance(parent, DictConfig) else []
    longer = _ending_in(str(error.full_key), parent)
    if longer:
        return UserError(f"{error.full_key} is not a key of the config; did you mean {' or '.join(longer)}?")
    section, _, key = str(error.full_key).rpartition(".")
    if section == "trainer":
        return flag_mistake(key, known) or UserError(f"trainer.{key} stands in no file yet: write +trainer.{key}=...")
    if section in ("callbacks", "logger") and not renamed(str(error.full_key)):
        return UserError(
            f"{section}.{key} has not been chosen: write {section}={key} first, or +{section}.{key}._target_=... for a "
            "class of your own"
        )
    if section and not known:  # it is null
        return UserError(f"{error.full_key}: this config has no {section} in which it could be set: leave it out")
    section = section or "the config"
    return no_such_key(str(error.full_key), section, known)


def _no_such_group(group: str) -> UserError:
    if now := renamed(group):
        return UserError(f"{group} was renamed to {now}: write {now}=...")
    groups = [known for known in _groups() if known != group]  # a folder of that name may lie there for nothing
    nearest = [known for known in groups if known.endswith(f"/{group}")]
    told = f"did you mean {' or '.join(nearest)}?" if nearest else did_you_mean(group, groups)
    return UserError(f"{group} is not a config group; {told}")


def no_such_key(key: str, section: str, known: Iterable[str], target: str = "") -> UserError:
    """The sentence for a key that its section, or the class `target` that it configures, does not have."""
    if section == "model.position" and "cross" in key:
        return UserError(
            f"{key} does not exist: source and target have no offset from each other, so that every position scheme "
            "leaves attention from decoder to encoder alone; leave it out"
        )
    if now := renamed(key):
        return UserError(f"{key} was renamed to {now}: write {now}=...")
    refused = f", for {target} does not take it" if target else ""
    return UserError(f"{key} is not a key of {section}{refused}; {did_you_mean(key.rpartition('.')[2], known)}")


def _unknown_group(error: HydraException) -> UserError:
    first = str(error).splitlines()[0]
    match = _NOT_IN_DEFAULTS.search(first)
    if match and (needs := next((axis.needs for axis in axes() if axis.group == match[1]), "")):
        return UserError(f"{match[1]} belongs to {needs}: choose that too")
    if match and (shipped("conf") / match[1]).is_dir():
        return UserError(f"{match[1]} cannot be chosen here, for a trained run has its own: leave it out")
    if match and "defaults list" in str(error):
        return _no_such_group(match[1])
    if several := _SEVERAL.search(first):
        key, _, words = several[1].partition("=")
        return UserError(
            f"{several[1]} is several values, and one run takes one: `etude train -m {several[1]}` makes a run of "
            f"each, [a,b] is one value, a list, and '{key}=\"{words}\"' is one, a text"
        )
    if (missing := _NOT_LOADED.search(first)) and missing[1] in _groups():
        files = (file for root in folders_of("conf") for file in (root / missing[1]).glob("*.yaml"))
        return _no_such_option(missing[1], missing[2], sorted({file.stem for file in files}))
    if twice := _TWICE.match(first):
        return UserError(f"{twice[1]} is chosen already: write {twice[1]}=NAME, once and without a +")
    return UserError(first)


def _ending_in(name: str, config: object) -> list[str]:
    """Keys and groups that `name` may be short for: `heads` for `model.heads`."""
    if "." in name or not isinstance(config, DictConfig):
        return []
    groups = [group for group in _groups() if group.endswith(f"/{name}")]
    keys = [key for key in _keys(config) if key.endswith(f".{name}")]
    least = min((key.count(".") for key in keys), default=0)
    return groups or [key for key in keys if key.count(".") == least]


def _keys(config: DictConfig, path: str = "") -> Iterator[str]:
    """Every dotted key of a config, not resolved."""
    for key in config:
        whole = path + str(key)
        yield whole
        node = config._get_node(key)
        if isinstance(node, DictConfig) and not node._is_none():
            yield from _keys(node, f"{whole}.")


def _groups() -> list[str]:
    """Every config group that a person can override."""
    return sorted(
        {path.relative_to(root).as_posix() for root in folders_of("conf") for path in root.rglob("*") if path.is_dir()}
    )
