"""The scientific axes: every config group with more than one value, its values, and a description of each.

`python -m etude.study.axes` prints them as a Markdown table, and a table of the values that have a paper's address;
given the names of files, it updates the tables there.
"""

import re
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from importlib.resources.abc import Traversable
from pathlib import Path

from etude.errors import UserError
from etude.files import write_text
from etude.paths import find_file, folders_of
from etude.yaml_file import read_yaml

SAME_FUNCTION = frozenset({"model/backend"})
"""Groups whose values compute the same function: no arm changes them, and results differ only by rounding."""

_BLOCK = re.compile(r"(?<=<!-- axes -->\n).*?(?=<!-- /axes -->)", re.DOTALL)
_PARTS = re.compile(r"(?<=<!-- parts -->\n).*?(?=<!-- /parts -->)", re.DOTALL)
_WITH_PAPER = re.compile(r"(?P<before>.*?),? (?P<address>https://\S+) \((?P<paper>[^)]*)\)(?P<after>.*)")


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


def table() -> str:
    """Render the axes as a Markdown table for a page in `docs`, one row each, with the default in bold."""
    rows = ["| axis | values, the default in bold |", "| :-- | :-- |"]
    for axis in axes():
        values = (f"**`{name}`**" if name == axis.default else f"`{name}`" for name in axis.values)
        where = f" with `{axis.needs}`" if axis.needs else ""
        rows.append(f"| [`{axis.group}`](../conf/{axis.group}){where} | {' '.join(values)} |")
    return "\n".join([*rows, ""])


def parts_table() -> str:
    """Render a Markdown table of the values whose file has a paper's address: part, paper, and what it changes."""
    rows = ["| part | paper | what it changes |", "| :-- | :-- | :-- |"]
    for axis in axes():
        for value, description in axis.values.items():
            if found := _WITH_PAPER.fullmatch(description):
                part = f"{axis.needs} {axis.group}={value}".strip()
                what = (found["before"] + found["after"]).rstrip(".")
                rows.append(f"| `{part}` | [{found['paper']}]({found['address']}) | {what} |")
    return "\n".join([*rows, ""])


def renew(document: str) -> str:
    """Update the table of axes between the two markers of a document, and that of parts if it has markers for it.

    Raises:
        UserError: the document does not have the markers.
    """
    if not _BLOCK.search(document):
        raise UserError("the table of axes goes between the lines <!-- axes --> and <!-- /axes -->: write them first")
    return _PARTS.sub(lambda _: parts_table(), _BLOCK.sub(lambda _: table(), document))


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


def main(files: Sequence[str]) -> None:
    """Print the tables, or update them in each of `files`."""
    for name in files:
        write_text(Path(name), renew(Path(name).read_text(encoding="utf-8")))
    if not files:
        sys.stdout.write(f"{table()}\n{parts_table()}")


if __name__ == "__main__":
    main(sys.argv[1:])
