"""The scientific axes: every config group that offers a choice, its values, and what each of them is.

`python -m etude.studies.axes` prints them as a Markdown table; with the name of a file, it renews the table in there.
"""

import re
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from importlib.resources.abc import Traversable
from pathlib import Path

from etude.errors import UserError
from etude.files import write_text
from etude.paths import find_file, folders_of
from etude.yaml_file import read_yaml

SAME_FUNCTION = frozenset({"model/backend"})
"""Groups whose values compute the same: no arm changes them, and no result depends on them but by rounding."""

_BLOCK = re.compile(r"(?<=<!-- axes -->\n).*?(?=<!-- /axes -->)", re.DOTALL)


@dataclass(frozen=True)
class Axis:
    """One config group: `etude train GROUP=VALUE`."""

    group: str
    default: str
    values: dict[str, str]  # name -> the first comment line of its YAML file, the default first
    needs: str = ""  # the choice that the group belongs to, such as model/decoder=recurrent


def axes() -> list[Axis]:
    """Every axis, in the order of the defaults lists, from `conf/train.yaml` on; a group of one file is none."""
    defaults: dict[str, str] = {}
    for group, value in _defaults(""):
        defaults[group] = defaults[value[2:-1]] if value.startswith("${") else value  # budget: ${scale}
    every = [Axis(group, value, _values(group, value)) for group, value in defaults.items()]
    found = [one for axis in every for one in (axis, *_of_others(axis))]
    return [axis for axis in found if len(axis.values) > 1]


def gloss(group: str, value: str, folders: Iterable[Traversable] = ()) -> str:
    """What the value of a group is: the first comment line of its YAML file, or nothing.

    Args:
        group: such as "model/position".
        value: such as "rope".
        folders: where configs are looked for, in this order; the user's `conf/` and the shipped one if nothing is said.
    """
    files = (folder / group / f"{value}.yaml" for folder in folders or folders_of("conf"))
    first = next((file for file in files if file.is_file()), None)
    lines = first.read_bytes().decode("utf-8", "replace").splitlines() if first else []
    comments = (line.lstrip("# ") for line in lines if line.startswith("#") and not line.startswith("# @package"))
    return next(comments, "")


def table() -> str:
    """The axes as a Markdown table for a page in `docs`, a row each, the default in bold."""
    rows = ["| axis | values, the default in bold |", "| :-- | :-- |"]
    for axis in axes():
        values = (f"**`{name}`**" if name == axis.default else f"`{name}`" for name in axis.values)
        where = f" with `{axis.needs}`" if axis.needs else ""
        rows.append(f"| [`{axis.group}`](../conf/{axis.group}){where} | {' '.join(values)} |")
    return "\n".join([*rows, ""])


def renew(document: str) -> str:
    """The document with the table between its two markers as it is now.

    Raises:
        UserError: the document has no place for it.
    """
    if not _BLOCK.search(document):
        raise UserError("the table of axes goes between the lines <!-- axes --> and <!-- /axes -->: write them first")
    return _BLOCK.sub(lambda _: table(), document)


def _defaults(group: str, option: str = "train") -> Iterator[tuple[str, str]]:
    """Group and value of each line in a defaults list, and of the lists of what it chooses."""
    content = read_yaml(find_file("conf", f"{group}/{option}.yaml".lstrip("/")))
    lines = content.get("defaults") if isinstance(content, dict) else None
    for line in lines if isinstance(lines, list) else ():  # Hydra tells what else stands there, where it is chosen
        for name, value in line.items() if isinstance(line, dict) else ():
            below = f"{group}/{name}".lstrip("/")
            if isinstance(value, str) and not str(name).startswith("override "):
                yield below, value
                if not value.startswith("${"):
                    yield from _defaults(below, value)


def _of_others(axis: Axis) -> Iterator[Axis]:
    """The groups that a value other than the default brings with it: a recurrent decoder has an alignment."""
    for value in axis.values:
        for group, default in _defaults(axis.group, value) if value != axis.default else ():
            if group.startswith(f"{axis.group}/"):
                yield Axis(group, default, _values(group, default), f"{axis.group}={value}")


def _values(group: str, default: str) -> dict[str, str]:
    names = {file.stem for folder in folders_of("conf") for file in (folder / group).glob("*.yaml")}
    return {name: gloss(group, name) for name in sorted(names, key=lambda name: (name != default, name))}


def main(files: Sequence[str]) -> None:
    """Print the table, or renew it in each of `files`."""
    for name in files:
        write_text(Path(name), renew(Path(name).read_text(encoding="utf-8")))
    if not files:
        sys.stdout.write(table())


if __name__ == "__main__":
    main(sys.argv[1:])
