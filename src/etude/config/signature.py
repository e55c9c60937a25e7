"""Read the signature of a `_target_` from its source, without importing it, so that checking a config needs no torch.

If the source is not enough, as for a class that inherits its constructor from a compiled module, it is imported.
"""

import ast
import importlib.util
import inspect
import re
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from functools import cache
from importlib.machinery import PathFinder
from pathlib import Path
from traceback import extract_tb
from typing import Any, Literal

from etude.errors import UserError, did_you_mean
from etude.paths import hidden_module

_NAMES = {kind.__name__: kind for kind in (int, float, bool, str, list, dict, tuple)} | {
    "Any": object,
    "Literal": Literal,
}

_Definition = ast.ClassDef | ast.FunctionDef


@dataclass(frozen=True)
class Signature:
    """The parameters of a target, which a config may or must give.

    Attributes:
        keywords: name -> type of all parameters that can be given by name; Any if the annotation is not a plain type.
        required: keyword-only parameters without a default.
        leading: positional parameters without a default, in order.
        defaults: the defaults of all parameters that are plain values.
        open: whether the target accepts any other keyword (`**kwargs`).
        by_name_alone: whether there are keyword-only parameters.
    """

    keywords: dict[str, Any]
    required: frozenset[str] = frozenset()
    leading: tuple[str, ...] = ()
    defaults: dict[str, Any] = field(default_factory=dict)
    open: bool = False
    by_name_alone: bool = False

    def for_config(self, partial: bool) -> "Signature":
        """Return the signature as it applies to the config: without the parameters that the code gives.

        If `partial`, the code calls the part and gives its leading parameters. If the part has keyword-only parameters,
        as étude's own have, the config must not give the leading ones; otherwise it may give some of them.
        """
        if not partial:
            return replace(self, required=self.required.union(self.leading))
        of_code = self.leading if self.by_name_alone else ()
        return replace(self, keywords={name: hint for name, hint in self.keywords.items() if name not in of_code})


@cache
def signature(target: str) -> Signature:
    """Return the signature of the class or function `target`, a dotted path, without `self`.

    Raises:
        UserError: there is no such module or no such name in it, or the module is not Python.
    """
    try:
        return _signature(target)
    except UserError as error:
        if hidden := hidden_module(target.partition(".")[0]):
            raise UserError(
                f"_target_: {target}: {hidden[0]} is not imported, for {hidden[1]} has its name: rename yours"
            ) from error
        raise


def _signature(target: str) -> Signature:
    module, _, name = target.rpartition(".")
    file = _source(module)
    if file is None:
        raise UserError(
            f"_target_: {target} cannot be found: write package.module.Name of what is installed or lies in this folder"
        )
    if file.suffix != ".py":
        return _import_signature(module, name)
    try:
        tree = ast.parse(file.read_bytes(), str(file))
    except SyntaxError as error:
        raise not_python(error) from error
    found, reexported = _names(tree, module, file)
    if name in reexported:
        return signature(reexported[name])
    ours = module.startswith("etude.")  # étude's classes inherit no constructor from other packages
    if name in found:
        return _read(found[name], found, reexported) or (Signature({}) if ours else _import_signature(module, name))
    if ours or not _may_hold(tree, name):
        raise UserError(f"_target_: {target} names nothing in {module}; {did_you_mean(name, [*found, *reexported])}")
    return _import_signature(module, name)


def not_python(error: SyntaxError) -> UserError:
    """Make the error for a file that cannot be parsed as Python."""
    return UserError(f"{error.filename}, line {error.lineno}: this is not Python: {error.msg}")


def not_imported(target: str, error: BaseException) -> UserError:
    """Make the error for a target whose module raises an error on import."""
    own = [frame for frame in extract_tb(error.__traceback__) if not frame.filename.startswith("<frozen")]
    where = f"{own[-1].filename}, line {own[-1].lineno}" if own else "its module"
    return UserError(f"_target_: {target} cannot be imported: {where}: {error}; mend it, or install what it asks for")


def _source(module: str) -> Path | None:
    """Find the file of a module without importing the packages that contain it; None if there is none."""
    first, *rest = module.split(".")
    try:
        spec = importlib.util.find_spec(first) if first else None
        for depth in range(len(rest)):
            places = spec and spec.submodule_search_locations
            spec = PathFinder.find_spec(".".join([first, *rest[: depth + 1]]), places) if places else None
    except KeyError:  # nested namespace packages (no __init__.py), whose import runs no code
        spec = importlib.util.find_spec(module)
    except (ImportError, ValueError):
        spec = None
    return Path(spec.origin) if spec and spec.origin and spec.has_location else None


def _names(tree: ast.Module, module: str, file: Path) -> tuple[dict[str, _Definition], dict[str, str]]:
    """Return the classes and functions that a module defines, and the full names of what it imports from others."""
    found = {node.name: node for node in tree.body if isinstance(node, ast.ClassDef | ast.FunctionDef)}
    return found, _reexported_names(tree, module if file.name == "__init__.py" else module.rpartition(".")[0])


def _reexported_names(tree: ast.Module, package: str) -> dict[str, str]:
    """Return the names that a module imports from others, with their full paths."""
    names: dict[str, str] = {}
    for node in tree.body:
        if isinstance(node, ast.ImportFrom):
            above = ".".join(package.split(".")[: package.count(".") + 2 - node.level]) if node.level else ""
            origin = ".".join(filter(None, [above, node.module]))
            names |= {alias.asname or alias.name: f"{origin}.{alias.name}" for alias in node.names}
    return names


def _may_hold(tree: ast.Module, name: str) -> bool:
    """Return whether a module may have a name that it neither defines nor imports at the top level."""
    written = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}
    hidden = {node.name for node in ast.walk(tree) if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.alias)}
    return bool({name, "*", "__getattr__"} & (written | hidden))


def _read(node: _Definition, module: dict[str, _Definition], reexported: dict[str, str]) -> Signature | None:
    """Read the signature from the source; None if it cannot be determined from it."""
    if isinstance(node, ast.FunctionDef):
        return _from_arguments(node.args)
    for child in node.body:
        if isinstance(child, ast.FunctionDef) and child.name == "__init__":
            return _from_arguments(child.args, method=True)
    if any("dataclass" in ast.unparse(decorator) for decorator in node.decorator_list):
        fields = _fields(node)
        return None if fields is None else _from_arguments(fields)
    for base in node.bases:  # an inherited __init__
        if isinstance(base, ast.Name) and base.id in module and len(node.bases) == 1:
            return _read(module[base.id], module, reexported)
        if isinstance(base, ast.Name) and reexported.get(base.id, "").startswith("etude."):
            return signature(reexported[base.id])
        if isinstance(base, ast.Name) and base.id in reexported and len(node.bases) == 1:
            return _read_foreign(reexported[base.id])
    return None if node.bases else Signature({})


def _read_foreign(base: str) -> Signature | None:
    """Read the constructor that a class inherits from one of another package; None if the source does not tell.

    Importing the class to inspect it would import that package, which takes two seconds if it is Lightning.
    """
    module, _, name = base.rpartition(".")
    file = _source(module)
    if file is None or file.suffix != ".py":
        return None
    found, reexported = _names(ast.parse(file.read_bytes(), str(file)), module, file)
    if name in reexported:
        return _read_foreign(reexported[name])
    node = found.get(name)
    if not isinstance(node, ast.ClassDef) or node.keywords or node.decorator_list:  # a metaclass, a dataclass
        return None
    made_by_new = any(isinstance(child, ast.FunctionDef) and child.name == "__new__" for child in node.body)
    return None if made_by_new else _read(node, found, reexported)


def _fields(node: ast.ClassDef) -> ast.arguments | None:
    """Convert the fields of a dataclass to parameters; None if it has bases or calls `field()`."""
    written = [ast.unparse(child) for child in node.body if isinstance(child, ast.AnnAssign)]
    own = [field for field in written if "ClassVar" not in field]
    if node.bases or any("KW_ONLY" in field or re.search(r"= (\w+\.)?field\(", field) for field in own):
        return None
    by_name = ["*"] if any("kw_only=True" in ast.unparse(decorator) for decorator in node.decorator_list) else []
    try:
        [function] = ast.parse(f"def part({', '.join([*by_name, *own])}): ...").body
    except SyntaxError:  # a field without default after one with: `dataclass` rejects it too
        return None
    return function.args  # type: ignore[attr-defined]


def _from_arguments(arguments: ast.arguments, *, method: bool = False) -> Signature:
    """Make the signature of a function with these arguments; for a method, without `self`.

    Annotations stay strings. A default that is not a constant becomes `...`, as only the module could evaluate it.
    """
    arguments.defaults = [_plain(default) for default in arguments.defaults]
    arguments.kw_defaults = [default and _plain(default) for default in arguments.kw_defaults]
    scope: dict[str, Any] = {}
    exec(f"from __future__ import annotations\ndef part({ast.unparse(arguments)}): ...", scope)
    return _from_parameters([*inspect.signature(scope["part"]).parameters.values()][method:], typed=True)


def _plain(default: ast.expr) -> ast.expr:
    return default if isinstance(default, ast.Constant) else ast.Constant(...)


def _import_signature(module: str, name: str) -> Signature:
    """Import the target and inspect its signature."""
    try:
        target = getattr(importlib.import_module(module), name)
    except AttributeError as error:
        raise UserError(f"_target_: {module}.{name} names nothing in {module}") from error
    except Exception as error:
        raise not_imported(f"{module}.{name}", error) from error
    try:
        parameters = inspect.signature(target).parameters.values()
    except (TypeError, ValueError):  # written in C
        return Signature({}, open=True)
    return _from_parameters(parameters)


def _from_parameters(parameters: Iterable[inspect.Parameter], *, typed: bool = False) -> Signature:
    parameters = [*parameters]
    named = [one for one in parameters if one.kind in (one.POSITIONAL_OR_KEYWORD, one.KEYWORD_ONLY)]
    bare = [one for one in named if one.default is one.empty]
    return Signature(
        {one.name: _type(one.annotation) if typed else Any for one in named},
        frozenset(one.name for one in bare if one.kind is one.KEYWORD_ONLY),
        tuple(one.name for one in bare if one.kind is one.POSITIONAL_OR_KEYWORD),
        {one.name: one.default for one in named if one.default not in (one.empty, ...)},
        any(one.kind is one.VAR_KEYWORD for one in parameters),
        any(one.kind is one.KEYWORD_ONLY for one in named),
    )


def _type(annotation: str) -> Any:
    """Evaluate a plain type such as `int`, `float | None`, `list[str]`, `Literal["a", "b"]`; anything else is Any."""
    try:
        hint = eval(annotation, {"__builtins__": {}}, _NAMES)
    except Exception:  # a name that only the module knows
        return Any
    return Any if isinstance(hint, str) else hint
