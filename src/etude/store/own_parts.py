"""Find the classes and functions of the user's that a config names, and their files."""

import os
import sys
import sysconfig
from collections.abc import Mapping
from contextlib import suppress
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from traceback import walk_tb
from typing import Any

from etude.files import checksum

LIBRARIES = {"torch", "lightning", "hydra", "omegaconf", "sentencepiece", "sacrebleu", "sacremoses", "numpy", "wandb"}
"""The libraries that a config names classes of. Their versions are recorded in `environment.json`."""

_ETUDE = str(Path(__file__).resolve().parents[2])  # in a wheel, where all libraries are
_STANDARD_LIBRARY = sysconfig.get_path("stdlib")
_LEAVES = (str, float, int, type(None))  # skipped for speed: most values in a config are of these types


def own_targets(config: Mapping[str, Any]) -> list[str]:
    """Return the classes and functions that a config names, except in its section `logger`, and that are the user's."""
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
    return sorted(target for target in found if _root(target) not in LIBRARIES | {"etude"})


def blame(error: BaseException, config: Mapping[str, Any]) -> str:
    """Describe which of the user's classes an error came from, such as " in mine.norm.Norm (mine/norm.py, line 9)".

    If it came from none of those that the config names, list all of them, as one may have returned a value that
    another part could not use. Empty if the config names no class or function of the user's.
    """
    own = {target: _source_file(target) for target in own_targets(config)}
    for frame, line in reversed([*walk_tb(error.__traceback__)]):
        name = frame.f_code.co_qualname.partition(".")[0]
        for target, file in own.items():
            if str(file) == frame.f_code.co_filename and target.endswith(f".{name}"):
                return f" in {target} ({file}, line {line})"
    return f" with {', '.join(f'{target} ({file})' for target, file in own.items())}" if own else ""


def hash_own_files(config: Mapping[str, Any]) -> dict[str, str]:
    """Return path and SHA-256 of each loaded file of the user's: below the working folder, or in a package of a target.

    The modules of the user's classes are imported first, as the run is about to do.
    """
    targets = own_targets(config)
    for target in targets:
        with suppress(Exception):  # whoever makes the part has the better sentence
            import_module(target.rpartition(".")[0])
    own, here = {_root(target) for target in targets}, f"{Path.cwd()}{os.sep}"
    found: dict[str, str] = {}
    for name, module in [*sys.modules.items()]:
        file = str(getattr(module, "__dict__", {}).get("__file__"))
        if _root(name) in own or (file.startswith(here) and not _is_a_librarys(file)):
            found |= _hash_file(name, Path(file))
    return dict(sorted(found.items()))


def hash_targets(config: Mapping[str, Any]) -> dict[str, str]:
    """Return path and SHA-256 of each file that holds a class or function of the user's that a config names."""
    files = {target: _source_file(target) for target in own_targets(config)}
    return {path: digest for t, file in files.items() if file for path, digest in _hash_file(t, file).items()}


def find_own_file(path: str) -> Path | None:
    """Return the file that was recorded under this path, without importing its package; None if it is not here."""
    places = [Path.cwd(), *_places(path.partition("/")[0].removesuffix(".py"))]
    return next((file for place in places if (file := place / path).is_file()), None)


def hash_content(file: Path) -> str:
    """Return the SHA-256 of a file; one that has not changed since is not read again."""
    at = file.stat()
    return _hash_content(file, at.st_mtime_ns, at.st_size)


@cache
def _hash_content(file: Path, changed: int, size: int) -> str:
    return checksum(file)


def _hash_file(module: str, file: Path) -> dict[str, str]:
    """Return the SHA-256 of a file under its path in the working folder, or in that of the module's package."""
    place = next((place for place in (Path.cwd(), *_places(_root(module))) if file.is_relative_to(place)), None)
    return {file.relative_to(place).as_posix(): hash_content(file)} if place and file.is_file() else {}


def _is_a_librarys(file: str) -> bool:
    return file.startswith((_ETUDE, _STANDARD_LIBRARY)) or bool(
        {"site-packages", "dist-packages"} & {*Path(file).parts}
    )


def _source_file(target: str) -> Path | None:
    """Return the source file of a class or function, without importing its packages; None if it is not found."""
    root, *rest = target.split(".")[:-1]
    for place in _places(root):
        path = place.joinpath(root, *rest)
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
