"""The arms of a study: those written out, and those that `each`, `grid` and `leave_one_out` make.

Each reader is given the file, for its messages, and what stands there under its key.

Raises:
    UserError: it is not as it should be; the file and the key are named.
"""

import json
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import product
from pathlib import Path
from typing import Any

from etude.errors import UserError, did_you_mean
from etude.studies.axes import SAME_FUNCTION, axes
from etude.studies.renames import refuse_old_name

Arms = dict[str, list[str]]  # the overrides of each, by its name

_NOT_AN_ARMS = ("study", "arm", "seed")  # which say whose run it is
_ARM = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]*")
_KEY = re.compile(r"[\w@./-]+")
_OVERRIDE = re.compile(rf"(\+\+?|~)?{_KEY.pattern}(=.*)?", re.DOTALL)
_AT_FULL_SCALE = re.compile(r"\$\{\w+:(.*)\}")  # ${width:512}


def read_arms(file: Path, content: Mapping[str, Any]) -> tuple[Arms, dict[str, str]]:
    """Every arm, the written ones first; and which arm those that leave one override out are held against."""
    listed = content.get("arms", {} if "grid" in content else None)
    if not isinstance(listed, dict) or not (listed or "grid" in content):
        raise UserError(f"{file}: arms must map the name of each arm to its list of overrides")
    arms = {arm: _overrides(file, arm, one) for arm, one in listed.items() if not isinstance(one, dict)}
    arms = {arm: arms[arm] if arm in arms else _without(file, arm, one, arms) for arm, one in listed.items()}
    arms = one_for_each(file, content.get("each", []), written=arms)
    arms = _join(file, "grid", arms, combine(file, content["grid"]) if "grid" in content else {})
    named: Any = content.get("leave_one_out", [])
    against: dict[str, str] = {}
    for name in named if isinstance(named, list) else [named]:
        made = leave_one_out(file, name, arms)
        arms = _join(file, "leave_one_out", arms, made)
        against |= {arm: str(name) for arm in made}
    return arms, against


def one_for_each(file: Path, groups: Any, written: Arms) -> Arms:
    """The `written` arms, and `<axis>-<value>` for every value of the axes under `groups` but the defaults.

    Values that only compute the same in another way are left out.
    """
    if not isinstance(groups, list):
        raise UserError(f"{file}: each must be a list of config groups, such as [model]")
    arms: Arms = {}
    for group in groups:
        under = [axis for axis in axes() if axis.group.startswith(f"{group}/")]
        if not under:
            raise UserError(f"{file}: each: there are no axes under {group!r}; model has some")
        for axis in under:
            name, brought = axis.group.rpartition("/")[2], [axis.needs] if axis.needs else []
            others = (value for value in axis.values if value != axis.default and axis.group not in SAME_FUNCTION)
            arms |= {f"{name}-{value}": [*brought, f"{axis.group}={value}"] for value in others}
    return written | {arm: overrides for arm, overrides in arms.items() if arm not in written}


def combine(file: Path, grid: Any) -> Arms:
    """An arm for every combination of values, the last key varying fastest, named after them: `heads4-rope`."""
    if not isinstance(grid, dict) or not grid:
        raise UserError(f"{file}: grid must map config groups or keys to lists of values, such as model.heads: [4, 8]")
    for key, values in grid.items():
        if not isinstance(key, str) or not _KEY.fullmatch(key):
            raise UserError(f"{file}: grid: {key!r} is no config group or key")
        if not isinstance(values, list) or not values or any(isinstance(value, list | dict) for value in values):
            raise UserError(f"{file}: grid.{key} must be a list of plain values, such as [4, 8], not {values!r}")
    labels = {key: [_label(key, value) for value in values] for key, values in grid.items()}
    uses = Counter(label for names in labels.values() for label in set(names))
    named = [
        [(f"{_last(key)}_{label}" if uses[label] > 1 else label, f"{key}={_format(value)}") for label, value in pairs]
        for key, pairs in ((key, zip(labels[key], values, strict=True)) for key, values in grid.items())
    ]
    combinations = [*product(*named)]
    arms = {"-".join(name for name, _ in one): [override for _, override in one] for one in combinations}
    if wrong := [name for name in arms if not _ARM.fullmatch(name)]:
        raise UserError(f"{file}: grid: {wrong[0]!r} cannot name an arm; write the arms with such values under arms")
    if len(arms) < len(combinations):
        raise UserError(f"{file}: grid: two combinations would have the same name; is a value listed twice?")
    return arms


def leave_one_out(file: Path, name: Any, written: Arms) -> Arms:
    """An arm for every override of the arm `name`, which lacks that one alone: `all-without-norm`."""
    overrides = _find_arm(file, "leave_one_out", name, written)
    if len(overrides) < 2:
        raise UserError(f"{file}: leave_one_out: the arm {name} needs two overrides or more to leave one out")
    short = Counter(_last(override_key(override)) for override in overrides)
    arms: Arms = {}
    for place, override in enumerate(overrides):
        key = override_key(override)
        what = _last(key) if short[_last(key)] == 1 else key.replace("/", ".")
        arms[f"{name}-without-{what}"] = overrides[:place] + overrides[place + 1 :]
    return arms


def _join(file: Path, key: str, arms: Arms, made: Arms) -> Arms:
    if taken := [name for name in made if name in arms]:
        raise UserError(f"{file}: {key} makes an arm {taken[0]}, and the study has one of that name: rename it")
    return arms | made


def _without(file: Path, arm: Any, given: Mapping[str, Any], written: Arms) -> list[str]:
    """The overrides of `{from: all, without: [model/norm]}`."""
    _check_name(file, arm)
    if set(given) != {"from", "without"} or not isinstance(given["without"], list):
        raise UserError(f"{file}: arms.{arm} must be a list of overrides, or {{from: ARM, without: [KEY, ...]}}")
    overrides = _find_arm(file, f"arms.{arm}.from", given["from"], written)
    known = [*map(override_key, overrides), *overrides]
    for word in given["without"]:
        if word not in known:
            there = did_you_mean(str(word), map(override_key, overrides))
            raise UserError(f"{file}: arms.{arm}.without: {given['from']} has no override {word!r}: {there}")
    return [override for override in overrides if not {override, override_key(override)} & set(given["without"])]


def _overrides(file: Path, arm: Any, listed: Any) -> list[str]:
    _check_name(file, arm)
    if not isinstance(listed, list):
        raise UserError(f"{file}: arms.{arm} must be a list of overrides, such as [model.heads=1]; [] changes nothing")
    for override in listed:
        if not isinstance(override, str) or not _OVERRIDE.fullmatch(override):
            raise UserError(f"{file}: arms.{arm}: {override!r} is no override; write key=value, as on the command line")
        key = override_key(override)
        refuse_old_name(file, f"arms.{arm}", key)
        if key in _NOT_AN_ARMS:
            raise UserError(f"{file}: arms.{arm}: {key} is not for an arm to set; leave {override} out")
    return list(listed)


def _check_name(file: Path, arm: Any) -> None:
    if not isinstance(arm, str) or not _ARM.fullmatch(arm):
        way = "use a to z, digits, '_', '-' and '.'" if isinstance(arm, str) else "write it in quotes"
        raise UserError(f"{file}: arms: {arm!r} cannot name an arm; {way}")


def _find_arm(file: Path, where: str, name: Any, written: Mapping[str, Sequence[str]]) -> list[str]:
    if not isinstance(name, str) or name not in written:
        raise UserError(f"{file}: {where}: no arm {name!r} is written out: {did_you_mean(str(name), written)}")
    return list(written[name])


def _label(key: str, value: Any) -> str:
    """How a value stands in the name of an arm: rope, heads4, bias_true."""
    text = _AT_FULL_SCALE.sub(r"\1", _format(value))
    if "." not in key and isinstance(value, str):
        return text
    return f"{_last(key)}{text}" if text[:1].isdigit() else f"{_last(key)}_{text}"


def _format(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value)


def override_key(override: str) -> str:
    """The config group or key that an override is about: `model.heads` of `+model.heads=4`."""
    return override.partition("=")[0].lstrip("+~")


def _last(key: str) -> str:
    return re.split(r"[/.]", key)[-1]
