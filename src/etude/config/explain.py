"""Convert errors of Hydra and OmegaConf to one sentence each, with the nearest names for those that do not exist."""

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
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
from omegaconf import DictConfig
from omegaconf.errors import OmegaConfBaseException
from yaml import MarkedYAMLError
from yaml.reader import ReaderError

from etude.config.groups import group_names, options
from etude.config.quoting import NOT_TEXT, quote
from etude.config.schema import GIVEN, INSTEAD, Trainer, hints_of
from etude.config.signature import not_imported, signature
from etude.config.sweepers import no_plugin, other_sweeper
from etude.errors import UserError, chain, did_you_mean
from etude.files import disk_mistake
from etude.paths import folders_of, note_on_missing, shipped
from etude.store.own_parts import blame
from etude.study.arm_names import is_arm
from etude.study.axes import axes
from etude.study.study import load_study, study_names
from etude.yaml_file import not_yaml, read_yaml

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
_NOT_IN_DEFAULTS = re.compile(r"Could not (?:override|delete) '([^']+)'")
_SEVERAL = re.compile(r"Ambiguous value for argument '(.+)'")
_NOT_LOADED = re.compile(r"Could not load '([^']+)/([^/']+)'")
_HYDRAS_OWN = re.compile(r"hydra\.(?!launcher\.|sweeper\.)")
_TWICE = re.compile(r"Multiple values for ([\w/]+)\.")

_RATE = "budget.lr_factor, by which the schedule's rate is multiplied"
_ELSEWHERE = {
    "lr": _RATE,
    "learning_rate": _RATE,
    "batch_size": "budget.source_tokens and budget.target_tokens",
    "epochs": "budget.max_steps",
    "num_epochs": "budget.max_steps",
    "beam_size": "decoding.beam",
    "num_beams": "decoding.beam",
    "hidden_size": "model.d_model",
    "num_heads": "model.heads",
    "num_layers": "model.n_layers",
    "gpus": "trainer.devices",
    "device": "trainer, as in trainer=cpu or trainer=gpu",
    "arms": "experiment=STUDY/ARM,STUDY/ARM, or 'experiment=glob(STUDY/A*)'",
    "group": "study, which groups runs at W&B",
    "job_type": "arm, which is the job type at W&B",
}
"""Names that other libraries have for keys of the config."""


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
            return other_sweeper(str(cause.missing_cfg_file)) or _missing_option(cause)
        if isinstance(cause, OverrideParseException):
            return _no_override(cause)
        if isinstance(cause, OmegaConfBaseException) and "is not in struct" in str(cause):
            return other_sweeper(str(cause.full_key)) or _unknown_key(cause)
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
        return _unknown_group(error)
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


def _missing_option(error: MissingConfigException) -> UserError:
    """Make the error for an option that its group does not have, such as `model/position=rop`."""
    missing = str(error.missing_cfg_file)
    known = [str(option) for option in error.options or []]
    group = max(
        (group for group in [*group_names(), "experiment"] if missing.startswith(f"{group}/")), key=len, default=""
    )
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
    if same := [option for option in known if option.rpartition("/")[2] == name]:
        return UserError(f"{group}={name}: did you mean {' or '.join(f'{group}={one}' for one in sorted(same))}?")
    return _no_such_option(group, name, known)


def refuse_number(word: str) -> None:
    """Refuse an override of a config group with what Hydra reads as a number, true, false or null.

    Raises:
        UserError: `word` is such an override.
    """
    group, _, name = word.partition("=")
    if NOT_TEXT.fullmatch(name) and group in group_names():
        raise _no_such_option(group, name, options(group))


def _no_such_option(group: str, name: str, known: Iterable[str]) -> UserError:
    roots, file = folders_of("conf"), f"{name}.yaml"
    elsewhere = [other for other in group_names() if any((root / other / file).is_file() for root in roots)]
    but = f", but there is in {' and in '.join(elsewhere)}" if 0 < len(elsewhere) <= 2 else ""
    study = ("experiments", f"{name.partition('/')[0]}/study.yaml")
    why = note_on_missing(*study if group == "experiment" else ("conf", f"{group}/{file}"))
    return UserError(
        f"{group}={name}: there is no {name!r} in the group {group}{but}; {did_you_mean(name, known)}{why}"
    )


def _unknown_key(error: OmegaConfBaseException) -> UserError:
    """Make the error for a key that its section does not have, such as `model.heds=4`."""
    if "/" in str(error.full_key):
        return no_such_group(str(error.full_key))
    if str(error.full_key) in _ELSEWHERE:
        return _called_otherwise(str(error.full_key))
    parent = error.parent_node
    known = [str(key) for key in parent] if isinstance(parent, DictConfig) else []
    if longer := _find_longer_keys(str(error.full_key), parent):
        return UserError(f"{error.full_key} is not a key of the config; did you mean {' or '.join(longer)}?")
    section, _, key = str(error.full_key).rpartition(".")
    by_class: Collection[str] = _keys_of_class(parent) if isinstance(parent, DictConfig) else ()
    if section == "trainer":
        by_class = hints_of(Trainer)
    if key in by_class:
        return UserError(f"{section}.{key} is not in the config yet: write +{section}.{key}=...")
    if section in ("callbacks", "logger"):
        return UserError(
            f"{section}.{key} has not been chosen: write {section}={key} first, or +{section}.{key}._target_=... for a "
            "class of your own"
        )
    if section and not known:  # the section is null
        return UserError(f"{error.full_key}: this config has no {section} in which it could be set: leave it out")
    if key in _ELSEWHERE and not section.startswith("hydra"):
        return _called_otherwise(str(error.full_key))
    section = section or "the config"
    return no_such_key(str(error.full_key), section, [*known, *by_class])


def _called_otherwise(key: str) -> UserError:
    return UserError(f"{key} is not a key of the config; here it is {_ELSEWHERE[key.rpartition('.')[2]]}")


def _keys_of_class(section: DictConfig) -> Collection[str]:
    """Return the parameters that the config may give to the class of a section, with or without a default."""
    with suppress(UserError):  # a missing class is reported by the check
        target = str(section.get("_target_", "etude."))
        if not target.startswith("etude."):  # whose parts have all their keys in the config
            taken = signature(target).for_config(bool(section.get("_partial_"))).keywords
            return taken.keys() - {name for names in GIVEN.values() for name in names}  # of the code, not of the config
    return ()


def no_such_group(group: str) -> UserError:
    """Make the error for a config group that does not exist."""
    groups = [known for known in group_names() if known != group]  # an unused folder of that name may exist
    nearest = [known for known in groups if known.endswith(f"/{group}")]
    hint = f"did you mean {' or '.join(nearest)}?" if nearest else did_you_mean(group, groups)
    return UserError(f"{group} is not a config group; {hint}")


def no_such_key(key: str, section: str, known: Iterable[str], target: str = "") -> UserError:
    """Make the error for a key that its section, or the class `target` that it configures, does not have."""
    if "/" in key:  # in an arm of a study
        return no_such_group(key)
    if section == "model.position" and "cross" in key:
        return UserError(
            f"{key} does not exist: source and target have no offset from each other, so that every position scheme "
            "leaves attention from decoder to encoder alone; leave it out"
        )
    group, _, name = key.rpartition(".")
    if section == "trainer" and name in INSTEAD:
        way_out = f"say {INSTEAD[name]} instead" if INSTEAD[name] else "leave it out"
        return UserError(f"{key} is set by étude itself: {way_out}")
    if name == "default" and (where := find_line(re.compile("default *:").match, group.replace(".", "/"))):
        return UserError(
            f"{where}: default is not a key of {section}; list the files that this one adds to under defaults:"
        )
    refused = f", for {target} does not take it" if target else ""
    return UserError(f"{key} is not a key of {section}{refused}; {did_you_mean(name, known)}")


def find_line(matches: Callable[[str], object], group: str = "") -> str:
    """Find the first line that matches in the user's own files of a config group: "FILE, line 3"; "" if none does."""
    for file in _own_files(group):
        lines = file.read_text(encoding="utf-8", errors="replace").splitlines()
        if found := next((number for number, line in enumerate(lines, start=1) if matches(line)), 0):
            return f"{file}, line {found}"
    return ""


def _unknown_group(error: HydraException) -> UserError:
    """Make the error for a group that does not exist, such as `model/positions=rope`, and for Hydra's other errors."""
    first = str(error).splitlines()[0]
    match = _NOT_IN_DEFAULTS.search(first)
    if match and (needs := next((axis.needs for axis in axes() if axis.group == match[1]), "")):
        return UserError(f"{match[1]} belongs to {needs}: choose that too")
    if match:
        _refuse_torn(match[1].rpartition("/")[0])
    if match and (shipped("conf") / match[1]).is_dir():
        return UserError(f"{match[1]} cannot be chosen here, for a trained run has its own: leave it out")
    if match and "defaults list" in str(error):
        return no_such_group(match[1])
    if several := _SEVERAL.search(first):
        key, _, words = several[1].partition("=")
        return UserError(
            f"{several[1]} is several values, and one run takes one: '{key}=\"{words}\"' is one, a text, [a,b] is one, "
            f"a list, and of a key of `etude train`, `etude train -m {several[1]}` makes a run of each"
        )
    if (missing := _NOT_LOADED.search(first)) and missing[1] in group_names():
        return _no_such_option(missing[1], missing[2], options(missing[1]))
    if twice := _TWICE.match(first):
        return UserError(f"{twice[1]} is chosen already: write {twice[1]}=NAME, once and without a +")
    return UserError(first)


def _refuse_torn(group: str) -> None:
    """Raise a UserError for a torn file of the user's: the defaults list cannot tell which groups belong to it."""
    for file in _own_files(group):
        read_yaml(file)


def _own_files(group: str) -> Iterator[Path]:
    """Yield the user's own files of a config group and of those below it."""
    for folder in folders_of("conf")[:-1]:
        yield from sorted((folder / group).rglob("*.yaml"))


def _find_longer_keys(name: str, config: object) -> list[str]:
    """Return the keys and groups that `name` may be short for, such as `model.heads` for `heads`."""
    if "." in name or not isinstance(config, DictConfig):
        return []
    groups = [group for group in group_names() if group.endswith(f"/{name}")]
    keys = [key for key in _keys(config) if key.endswith(f".{name}") and not _HYDRAS_OWN.match(key)]
    least = min((key.count(".") for key in keys), default=0)
    return groups or [key for key in keys if key.count(".") == least]


def _keys(config: DictConfig, path: str = "") -> Iterator[str]:
    """Yield every dotted key of a config, without resolving values."""
    for key in config:
        whole = path + str(key)
        yield whole
        node = config._get_node(key)
        if isinstance(node, DictConfig) and not node._is_none():
            yield from _keys(node, f"{whole}.")
