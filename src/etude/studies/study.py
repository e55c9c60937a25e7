"""Reading a study: `experiments/<name>/study.yaml`, and `paper.yaml` beside it where there is something to reproduce.

An arm is the list of Hydra overrides that a person would type: the intervention, and nothing else.
"""

import re
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from etude.errors import UserError, did_you_mean
from etude.paths import found
from etude.studies.axes import axes
from etude.studies.criteria import Criteria, read_against, read_criteria, read_seeds, read_tuning
from etude.yaml_file import read_yaml

_ARM = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]*")
_KEYS = {"title", "baseline", "arms", "each", "columns", "against", "seeds", "agreement", "tune", "pilots"}
_OVERRIDE = re.compile(r"(\+\+?|~)?[\w@./-]+(=.*)?", re.DOTALL)


@dataclass(frozen=True)
class Paper:
    """What the paper printed.

    Attributes:
        source: which paper, and where in it.
        test_set: what it was tested on.
        arms: numbers by arm and name (ppl, bleu, params_M), None where it printed none.
        proportions: its baseline's training without units, under the names of `plan/proportions.py`.
    """

    source: str = ""
    test_set: str = ""
    arms: dict[str, dict[str, float | None]] = field(default_factory=dict)
    proportions: dict[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class Study:
    """One study.

    Attributes:
        name: of its folder.
        title: above its table.
        baseline: the arm that the others are held against.
        arms: the overrides of each.
        columns: what the table shows of a run's config: printed header -> dotted key.
        paper: what it reproduces, if anything.
        against: the arms that are held against another one than the baseline, and which.
        seeds: how many an arm shall have, fixed before the runs are looked at; None where nothing was fixed.
        criteria: what counts as agreement with the paper; None where nothing was fixed.
        tune: the config keys that suit each arm differently, and the values to try; empty where nothing is tuned.
        pilots: the seeds on which they are tried, which no table of judged runs holds.
    """

    name: str
    title: str
    baseline: str
    arms: dict[str, list[str]]
    columns: dict[str, str]
    paper: Paper
    against: dict[str, str] = field(default_factory=dict)
    seeds: int | None = None
    criteria: Criteria | None = None
    tune: dict[str, list[Any]] = field(default_factory=dict)
    pilots: list[int] = field(default_factory=list)

    def reference(self, arm: str) -> str:
        """The arm that `arm` is held against."""
        return self.against.get(arm, self.baseline)

    @property
    def changed(self) -> set[str]:
        """The config groups and dotted keys that some arm changes."""
        return {override.partition("=")[0].lstrip("+~") for overrides in self.arms.values() for override in overrides}


def study_names() -> list[str]:
    """Every study there is, the user's own and the shipped ones."""
    return sorted({file.parent.name for folder in found("experiments") for file in folder.glob("*/study.yaml")})


def load_study(name: str) -> Study:
    """The study called `name`; the user's own folder comes before the shipped one.

    Raises:
        UserError: there is no such study, or one of its files is not as it should be.
    """
    if name == "single":
        raise UserError(
            "single is no study, for its runs were typed one by one: `etude diff RUN RUN` compares two configs, and "
            "experiments/NAME/study.yaml makes arms of them"
        )
    folder = next((f / name for f in found("experiments") if (f / name / "study.yaml").is_file()), None)
    if name not in study_names() or folder is None:
        raise UserError(f"there is no study {name!r}: {did_you_mean(name, study_names())}")
    files = (folder / "study.yaml", folder / "paper.yaml")
    return _read(folder, tuple(file.stat().st_mtime_ns for file in files if file.is_file()))


@cache
def arm_names() -> frozenset[str]:
    """`<study>/<arm>` for every arm of every study that can be read: one that cannot is in nobody else's way."""
    names: set[str] = set()
    for study in study_names():
        with suppress(UserError):
            names.update(f"{study}/{arm}" for arm in load_study(study).arms)
    return frozenset(names)


@cache
def _read(folder: Path, changed: tuple[int, ...]) -> Study:
    """The study in `folder`, read again when one of its files was `changed`."""
    file = folder / "study.yaml"
    content = _mapping(file, allowed=_KEYS, needed=("baseline", "arms"))
    if not isinstance(content["arms"], dict) or not content["arms"]:
        raise UserError(f"{file}: arms must map the name of each arm to its list of overrides")
    written = {arm: _overrides(file, arm, listed) for arm, listed in content["arms"].items()}
    arms = written | _one_for_each(file, content.get("each", []), written)
    baseline = str(content["baseline"])
    if baseline not in arms:
        raise UserError(f"{file}: baseline: the study has no arm {baseline!r}: {did_you_mean(baseline, arms)}")
    columns = content.get("columns") or {}
    if not isinstance(columns, dict) or not all(isinstance(text, str) for item in columns.items() for text in item):
        raise UserError(f"{file}: columns must map each printed header to a config key, such as h: model.heads")
    title = str(content.get("title", folder.name))
    return Study(
        folder.name,
        title,
        baseline,
        arms,
        columns,
        _paper(folder / "paper.yaml", arms),
        read_against(file, content.get("against"), arms, baseline),
        read_seeds(file, content.get("seeds")),
        read_criteria(file, content.get("agreement")),
        *read_tuning(file, content),
    )


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


def _one_for_each(file: Path, groups: Any, written: Mapping[str, list[str]]) -> dict[str, list[str]]:
    """An arm `<axis>-<value>` for every value of the axes under `groups`, but for the defaults and those `written`."""
    if not isinstance(groups, list):
        raise UserError(f"{file}: each must be a list of config groups, such as [model]")
    arms: dict[str, list[str]] = {}
    for group in groups:
        under = [axis for axis in axes() if axis.group.startswith(f"{group}/")]
        if not under:
            raise UserError(f"{file}: each: there are no axes under {group!r}; model has some")
        for axis in under:
            name = axis.group.removeprefix(f"{group}/")
            arms |= {f"{name}-{value}": [f"{axis.group}={value}"] for value in axis.values if value != axis.default}
    return {arm: overrides for arm, overrides in arms.items() if arm not in written}


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
    content = _mapping(file, allowed={"source", "test_set", "arms", "proportions"}, needed=("arms",))
    numbers: dict[str, dict[str, float | None]] = {}
    for arm, row in (content["arms"] or {}).items():
        if arm not in arms:
            raise UserError(f"{file}: arms: the study has no arm {arm!r}: {did_you_mean(str(arm), arms)}")
        if not isinstance(row, dict) or not all(v is None or type(v) in (int, float) for v in row.values()):
            raise UserError(f"{file}: arms.{arm} must hold numbers (ppl, bleu, params_M), null where none is printed")
        numbers[arm] = row
    proportions = content.get("proportions") or {}
    if not isinstance(proportions, dict) or not all(type(value) in (int, float) for value in proportions.values()):
        raise UserError(f"{file}: proportions must map names to numbers, such as epochs: 20")
    return Paper(str(content.get("source", "")), str(content.get("test_set", "")), numbers, proportions)


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
