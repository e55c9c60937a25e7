"""The scientific axes: every config group with more than one value, its values, and a description of each."""

from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from importlib.resources.abc import Traversable

from etude.errors import UserError
from etude.paths import find_file, folders_of
from etude.yaml_file import read_yaml

SAME_FUNCTION = frozenset({"model/backend"})
"""Groups whose values compute the same function: no arm changes them, and results differ only by rounding."""


@dataclass(frozen=True)
class Axis:
    """One config group: `etude train GROUP=VALUE`."""

    group: str
    default: str
    values: dict[str, str]  # name -> the first comment line of its YAML file, the default first
    needs: str = ""  # the choice that makes the group available, such as model/decoder=recurrent


def axes() -> list[Axis]:
    """List every axis, in the order of the defaults lists from `conf/train.yaml` on, without groups of one file."""
    defaults: dict[str, str] = {}
    for group, value in _defaults(""):
        defaults[group] = defaults[value[2:-1]] if value.startswith("${") else value  # budget: ${scale}
    every = [Axis(group, value, _values(group, value)) for group, value in defaults.items()]
    found = [one for axis in every for one in (axis, *_nested_axes(axis))]
    return [axis for axis in found if len(axis.values) > 1]


def is_shipped(axis: Axis) -> bool:
    """Return whether étude itself has the choice that an axis needs."""
    group, _, value = axis.needs.partition("=")
    return not axis.needs or (folders_of("conf")[-1] / group / f"{value}.yaml").is_file()


def gloss(group: str, value: str, folders: Iterable[Traversable] = ()) -> str:
    """Return the description of a group's value: the first comment line of its YAML file, or "".

    Args:
        group: such as "model/position".
        value: such as "rope".
        folders: the config folders to search, in this order; by default the user's `conf/`, then the shipped one.
    """
    files = (folder / group / f"{value}.yaml" for folder in folders or folders_of("conf"))
    first = next((file for file in files if file.is_file()), None)
    lines = first.read_bytes().decode("utf-8", "replace").splitlines() if first else []
    comments = (line.lstrip("# ") for line in lines if line.startswith("#") and not line.startswith("# @package"))
    return next(comments, "")


def _defaults(group: str, option: str = "train") -> Iterator[tuple[str, str]]:
    """Yield group and value of each entry in a defaults list, and recursively in the lists of the chosen files."""
    content = read_yaml(find_file("conf", f"{group}/{option}.yaml".lstrip("/")))
    lines = content.get("defaults") if isinstance(content, dict) else None
    for line in lines if isinstance(lines, list) else ():  # Hydra reports other entries when the file is used
        for name, value in line.items() if isinstance(line, dict) else ():
            below = f"{group}/{name}".lstrip("/")
            if isinstance(value, str) and not str(name).startswith(("override ", "/")):
                yield below, value
                if not value.startswith("${"):
                    yield from _defaults(below, value)


def _nested_axes(axis: Axis) -> Iterator[Axis]:
    """Yield the axes that exist only with a value other than the default: a recurrent decoder has an alignment."""
    for value in axis.values:
        with suppress(UserError):  # a file that is not YAML is told by what chooses it, and is in nobody else's way
            for group, default in _defaults(axis.group, value) if value != axis.default else ():
                if group.startswith(f"{axis.group}/"):
                    yield Axis(group, default, _values(group, default), f"{axis.group}={value}")


def _values(group: str, default: str) -> dict[str, str]:
    names = {file.stem for folder in folders_of("conf") for file in (folder / group).glob("*.yaml")}
    return {name: gloss(group, name) for name in sorted(names, key=lambda name: (name != default, name))}
