"""Read the signature of a `_target_` from its source, without importing it, so that checking a config needs no torch.

If the source is not enough, as for a class that inherits its constructor from a compiled module, it is imported.
"""

import ast
import importlib
import inspect
import re
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from traceback import extract_tb
from typing import Any, Literal

from etude.config.module_source import Definition, ModuleSource, find_source
from etude.errors import UserError, did_you_mean
from etude.paths import hidden_module

_NAMES = {kind.__name__: kind for kind in (int, float, bool, str, list, dict, tuple)} | {
    "Any": object,
    "Literal": Literal,
}


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
    file = find_source(module)
    if file is None:
        raise _is_module(target) or UserError(
            f"_target_: {target} cannot be found: write package.module.Name of what is installed or lies in this folder"
        )
    if file.suffix != ".py":
        return _import_signature(module, name)
    source = _parse(module, file)
    if source.imported.get(name, target) != target:
        return signature(source.imported[name])
    ours = module.startswith("etude.")  # étude's classes inherit no constructor from other packages
    if name in source.defined:
        return _read(source.defined[name], source) or (Signature({}) if ours else _import_signature(module, name))
    if mistake := _is_module(target):
        raise mistake
    if ours or not source.may_hold(name):
        names = [*source.defined, *(one for one, origin in source.imported.items() if not find_source(origin))]
        raise UserError(f"_target_: {target} names nothing in {module}; {did_you_mean(name, names)}")
    return _import_signature(module, name)


def _is_module(target: str) -> UserError | None:
    """Return the error for a target that is a module; None if there is no module of that name."""
    way_out = f"write {target}.NAME, a class or function in it"
    return UserError(f"_target_: {target} is a module: {way_out}") if find_source(target) else None


def _parse(module: str, file: Path) -> ModuleSource:
    try:
        return ModuleSource(module, file)
    except SyntaxError as error:
        raise UserError(f"{error.filename}, line {error.lineno}: this is not Python: {error.msg}") from error


def not_imported(target: str, error: BaseException) -> UserError:
    """Make the error for a target whose module raises an error on import."""
    own = [frame for frame in extract_tb(error.__traceback__) if not frame.filename.startswith("<frozen")]
    where = f"{own[-1].filename}, line {own[-1].lineno}" if own else "its module"
    return UserError(f"_target_: {target} cannot be imported: {where}: {error}; mend it, or install what it asks for")


def _read(node: Definition, source: ModuleSource) -> Signature | None:
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
        name = base.id if isinstance(base, ast.Name) else ""
        if name in source.defined and len(node.bases) == 1:
            return _read(source.defined[name], source)
        if source.imported.get(name, "").startswith("etude."):
            return signature(source.imported[name])
        if name in source.imported and len(node.bases) == 1:
            return _read_foreign(source.imported[name])
    return None if node.bases else Signature({})


def _read_foreign(base: str) -> Signature | None:
    """Read the constructor that a class inherits from one of another package; None if the source does not tell.

    Importing the class to inspect it would import that package, which takes two seconds if it is Lightning.
    """
    module, _, name = base.rpartition(".")
    file = find_source(module)
    if file is None or file.suffix != ".py":
        return None
    source = _parse(module, file)
    if name in source.imported:
        return _read_foreign(source.imported[name])
    node = source.defined.get(name)
    if not isinstance(node, ast.ClassDef) or node.keywords or node.decorator_list:  # a metaclass, a dataclass
        return None
    made_by_new = any(isinstance(child, ast.FunctionDef) and child.name == "__new__" for child in node.body)
    return None if made_by_new else _read(node, source)


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
