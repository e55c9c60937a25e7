"""Compute a fingerprint of the code that a result depends on. Runs with the same fingerprint used the same code.

Starting from `etude.training.run` and the classes that a config names, every name in a definition is followed to its
own definition. Other definitions in the same files do not count, so that adding a variation does not change the
fingerprint of runs that do not use it. No module is imported, so torch is not needed.
"""

import hashlib
import re
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from traceback import walk_tb
from typing import Any

from etude.runs.material import ONLOOKERS
from etude.runs.source import Definition, Source

_START = "etude.training.run.train"
_PACKAGE = Path(__file__).resolve().parents[1]
_SAME_CODE = Path(__file__).with_name("same_code.txt")

# Modules that no result depends on: they configure, launch, log, store and show.
_WITHOUT_EFFECT = re.compile(
    r"etude\.(cli|config|errors|files|inspect|launchers|logs|paths|report|runs|search|studies|terminal|wandb_service"
    r"|yaml_file|tasks\.(claims|counted|size|text_size)|training\.(loggers|metrics_writers|rehearsal|stopping|wandb_logger))(\.|$)"
)
# Libraries are not followed: `environment.json` has their versions.
_LIBRARIES = {"torch", "lightning", "hydra", "omegaconf", "sentencepiece", "sacrebleu", "sacremoses", "numpy", "wandb"}

_LEAVES = (str, float, int, type(None))  # skipped for speed: most values in a config are of these types

_UNKNOWN = Definition("not to be found", frozenset())


def code_fingerprint(config: Mapping[str, Any]) -> str:
    """Return ten hex digits that identify the code which a run of this config depends on.

    They change when a definition that the run can reach changes, in étude or in the package of a class that the config
    names. Comments, docstrings and formatting do not matter. Code that was shown to give the same results as code
    before it keeps the digits of that code: `same_code.txt`.
    """
    return known_as(code_digits(config))


def code_digits(config: Mapping[str, Any]) -> str:
    """Return the digits of the code that a run of this config depends on, whatever that code is known as."""
    return _digits_of(_targets_of(config) | {_START})


def own_code(node: Mapping[str, Any]) -> str:
    """Return ten hex digits of the code of the user's that a config node names or reaches; "" if there is none."""
    own = own_targets(node)
    return _digits_of(frozenset(own), etudes=False) if own else ""


def unread_of(config: Mapping[str, Any]) -> list[str]:
    """Return the user's classes and functions that a config names and whose source is not found here."""
    return [
        target for target in own_targets(config) if _UNKNOWN in (definition for _, definition in _definitions(target))
    ]


def blame(error: BaseException, config: Mapping[str, Any]) -> str:
    """Describe which of the user's classes an error came from, such as " in mine.norm.Norm (mine/norm.py, line 9)".

    If it came from none of those that the config names, list all of them, as one may have returned a value that
    another part could not use. Empty if the config names no class or function of the user's.
    """
    own = {target: _file(target.rpartition(".")[0]) for target in sorted(own_targets(config))}
    for frame, line in reversed([*walk_tb(error.__traceback__)]):
        name = frame.f_code.co_qualname.partition(".")[0]
        for target, file in own.items():
            if str(file) == frame.f_code.co_filename and target.endswith(f".{name}"):
                return f" in {target} ({file}, line {line})"
    return f" with {', '.join(f'{target} ({file})' for target, file in own.items())}" if own else ""


def own_targets(config: Mapping[str, Any]) -> list[str]:
    """Return the classes and functions that a config names and that are neither étude's nor a library's."""
    return [target for target in _targets_of(config) if _root(target) not in _LIBRARIES | {"etude"}]


def _targets_of(config: Mapping[str, Any]) -> frozenset[str]:
    """Return the classes and functions that a config names, except in its section `logger`."""
    found: set[str] = set()
    todo: list[Any] = [{key: node for key, node in config.items() if key != "logger"}]
    while todo:
        node = todo.pop()
        if isinstance(node, Mapping):
            if isinstance(target := node.get("_target_"), str):
                found.add(target)
            todo += [child for child in node.values() if not isinstance(child, _LEAVES)]
        elif isinstance(node, list | tuple):
            todo += [child for child in node if not isinstance(child, _LEAVES)]
    return frozenset(found)


def known_as(digits: str) -> str:
    """Return the fingerprint of code with these digits: those of the earliest code that it gives the results of."""
    while earlier := _same_code().get(digits):
        digits = earlier
    return digits


@cache
def _same_code() -> dict[str, str]:
    """Read which code was shown to give the same results as which code before it."""
    lines = _SAME_CODE.read_text(encoding="utf-8").splitlines()
    return dict(line.split() for line in lines if not line.startswith("#"))


@cache
def _digits_of(names: frozenset[str], *, etudes: bool = True) -> str:
    """Return ten hex digits of the code that these names reach, étude's included or not, whatever it is known as."""
    seen: set[str] = set()
    found: dict[str, str] = {}
    todo = list(names - ONLOOKERS)
    while todo:
        name = todo.pop()
        if name in seen:
            continue
        seen.add(name)
        for where, definition in _definitions(name):
            found[where] = "\n".join([definition.text, *sorted(definition.needs)])
            todo += _names_to_follow(where, definition.needs)
    counted = [where for where in sorted(found) if etudes or _root(where) != "etude"]
    content = "\0".join(f"{where}\0{found[where]}" for where in counted)
    return hashlib.sha256(content.encode()).hexdigest()[:10]


def _names_to_follow(where: str, needs: Iterable[str]) -> Iterator[str]:
    """Yield the names that belong to étude or to the definition's package; for a user's part, to the folder, too."""
    roots = {"etude", _root(where)}
    if _root(where) != "etude":
        roots |= {root for root in map(_root, needs) if root not in _LIBRARIES and Path.cwd() in _places(root)}
    return (name for name in needs if _root(name) in roots and not _WITHOUT_EFFECT.match(name))


@cache
def _definitions(name: str) -> list[tuple[str, Definition]]:
    """Return the definition of a full name and what its module does on import; for a module, all its definitions."""
    source, rest = _source(name)
    if source is None:
        return [(name, _UNKNOWN)]
    asked = [rest.partition(".")[0]] if rest else source.names
    known = [(f"{source.module}.{one}", source.definition(one) or _UNKNOWN) for one in asked]
    return [*known, (source.module, source.on_import)]


@cache
def _source(name: str) -> tuple[Source | None, str]:
    """Split a full name into the longest module it begins with, as its source, and the rest; None without a module."""
    if _root(name) in _LIBRARIES:
        return None, name
    parts = name.split(".")
    for end in range(len(parts), 0, -1):
        module = ".".join(parts[:end])
        if read := _module(module):
            return read, ".".join(parts[end:])
    return None, name


@cache
def _module(name: str) -> Source | None:
    file = _file(name)
    try:
        return Source(name, file) if file else None
    except (SyntaxError, ValueError):  # a user's module that is being edited
        return None


def _file(module: str) -> Path | None:
    """Return the source file of a module, without importing its packages; None if it is not found."""
    root, _, rest = module.partition(".")
    places = [_PACKAGE.parent] if root == "etude" else _places(root)
    for place in places:
        path = place.joinpath(root, *rest.split(".")) if rest else place / root
        for file in (path.with_name(f"{path.name}.py"), path / "__init__.py"):
            if file.is_file():
                return file
    return None


@cache
def _places(root: str) -> list[Path]:
    """Return the folders that contain a top-level package or module."""
    try:
        spec = find_spec(root)
    except (ImportError, ValueError):
        return []
    if spec is None:
        return []
    return [Path(place).parent for place in spec.submodule_search_locations or [spec.origin or ""]]


def _root(name: str) -> str:
    return name.partition(".")[0]
