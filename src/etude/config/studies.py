"""Reading a study: `experiments/<name>/study.yaml`, and `paper.yaml` beside it where there is something to reproduce.

An arm is the list of Hydra overrides that a person would type: the intervention, and nothing else.
"""

import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from etude.errors import UserError, did_you_mean
from etude.paths import found

_ARM = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]*")
_OVERRIDE = re.compile(r"(\+\+?|~)?[\w@./-]+(=.*)?", re.DOTALL)


@dataclass(frozen=True)
class Paper:
    """What the paper printed: numbers by arm and name (ppl, bleu, params_M), None where it printed none."""

    source: str = ""
    test_set: str = ""
    arms: dict[str, dict[str, float | None]] = field(default_factory=dict)


@dataclass(frozen=True)
class Study:
    """One study: which arms there are, which is the baseline, and which config keys its table shows."""

    name: str
    title: str
    baseline: str
    arms: dict[str, list[str]]
    columns: dict[str, str]  # printed header -> dotted key of the run's config
    paper: Paper


def study_names() -> list[str]:
    """Every study there is, the user's own and the shipped ones."""
    return sorted({file.parent.name for folder in found("experiments") for file in folder.glob("*/study.yaml")})


def load_study(name: str) -> Study:
    """The study called `name`; the user's own folder comes before the shipped one.

    Raises:
        UserError: there is no such study, or one of its files is not as it should be.
    """
    folder = next((f / name for f in found("experiments") if (f / name / "study.yaml").is_file()), None)
    if name not in study_names() or folder is None:
        raise UserError(f"there is no study {name!r}: {did_you_mean(name, study_names())}")
    file = folder / "study.yaml"
    content = _mapping(file, allowed={"title", "baseline", "arms", "columns"}, needed=("baseline", "arms"))
    if not isinstance(content["arms"], dict) or not content["arms"]:
        raise UserError(f"{file}: arms must map the name of each arm to its list of overrides")
    arms = {arm: _overrides(file, arm, listed) for arm, listed in content["arms"].items()}
    baseline = str(content["baseline"])
    if baseline not in arms:
        raise UserError(f"{file}: baseline: the study has no arm {baseline!r}: {did_you_mean(baseline, arms)}")
    columns = content.get("columns") or {}
    if not isinstance(columns, dict) or not all(isinstance(text, str) for item in columns.items() for text in item):
        raise UserError(f"{file}: columns must map each printed header to a config key, such as h: model.heads")
    title = str(content.get("title", name))
    return Study(name, title, baseline, arms, columns, _paper(folder / "paper.yaml", arms))


def value_at(config: dict[str, Any], key: str) -> Any:
    """What `config` holds under a dotted key, or None.

    Example:
        >>> value_at({"choices": {"model/position": "learned"}}, "choices.model/position")
        'learned'
    """
    value: Any = config
    for part in key.split("."):
        value = value.get(part) if isinstance(value, dict) else None
    return value


def _overrides(file: Path, arm: Any, listed: Any) -> list[str]:
    if not isinstance(arm, str) or not _ARM.fullmatch(arm):
        raise UserError(f"{file}: arms: {arm!r} cannot name an arm; use letters, digits, '_', '-' and '.'")
    if not isinstance(listed, list):
        raise UserError(f"{file}: arms.{arm} must be a list of overrides, such as [model.heads=1]; [] changes nothing")
    for override in listed:
        if not isinstance(override, str) or not _OVERRIDE.fullmatch(override):
            raise UserError(f"{file}: arms.{arm}: {override!r} is no override; write key=value, as on the command line")
    return list(listed)


def _paper(file: Path, arms: dict[str, list[str]]) -> Paper:
    if not file.is_file():
        return Paper()
    content = _mapping(file, allowed={"source", "test_set", "arms"}, needed=("arms",))
    numbers: dict[str, dict[str, float | None]] = {}
    for arm, row in (content["arms"] or {}).items():
        if arm not in arms:
            raise UserError(f"{file}: arms: the study has no arm {arm!r}: {did_you_mean(str(arm), arms)}")
        if not isinstance(row, dict) or not all(v is None or type(v) in (int, float) for v in row.values()):
            raise UserError(f"{file}: arms.{arm} must hold numbers (ppl, bleu, params_M), null where none is printed")
        numbers[arm] = row
    return Paper(str(content.get("source", "")), str(content.get("test_set", "")), numbers)


def _mapping(file: Path, allowed: set[str], needed: tuple[str, ...]) -> dict[str, Any]:
    content = read_yaml(file)
    if not isinstance(content, dict):
        raise UserError(f"{file}: there must be the keys {', '.join(sorted(allowed))}")
    for key in content:
        if key not in allowed:
            raise UserError(f"{file}: unknown key {key!r}: {did_you_mean(str(key), allowed)}")
    for key in needed:
        if key not in content:
            raise UserError(f"{file}: the key {key!r} is missing")
    return content


class _NoKeyTwice(yaml.SafeLoader):
    """YAML in which a key written twice is a mistake, not the loss of what stood there first."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        seen: dict[str, int] = {}
        for key, _ in node.value:
            word, line = str(key.value), key.start_mark.line + 1
            if word in seen:
                raise UserError(f"{self.name}, line {line}: {word} already stands in line {seen[word]}")
            seen[word] = line
        return super().construct_mapping(node, deep)


def read_yaml(file: Path) -> Any:
    """The content of a YAML file.

    Raises:
        UserError: it cannot be read or is not YAML (the line is named), or holds a key twice.
    """
    try:
        with file.open(encoding="utf-8") as stream:
            return yaml.load(stream, Loader=_NoKeyTwice)
    except OSError as error:
        raise UserError(f"cannot read {file}: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise UserError(f"{file} is not UTF-8 text") from error
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        line = f", line {mark.line + 1}" if mark else ""
        raise UserError(f"{file}{line}: this is not YAML: {getattr(error, 'problem', error)}") from error
