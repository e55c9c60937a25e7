"""The signature of a `_target_`, read from its source without importing it (so that a check needs no torch)."""

import ast
import importlib.util
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Literal, TypeGuard

from etude.errors import UserError, did_you_mean

_NAMES = {"int": int, "float": float, "bool": bool, "str": str, "list": list, "dict": dict, "tuple": tuple}


@dataclass(frozen=True)
class Signature:
    """What a config may and must give to a target.

    By the project's rule YAML gives the keyword-only arguments; positional ones come from the code that calls the part.
    """

    keywords: dict[str, Any]  # name -> type; Any where the annotation is not a plain type
    required: frozenset[str]
    defaults: dict[str, Any]  # of all parameters, where they are plain values


@cache
def signature(target: str) -> Signature:
    """The keyword-only parameters of the class or function `target`, a dotted path.

    Raises:
        UserError: there is no such module or no such name in it, or the module is not Python.
    """
    module, _, name = target.rpartition(".")
    file = _source(module, target)
    try:
        tree = ast.parse(file.read_bytes(), str(file))
    except SyntaxError as error:
        raise not_python(error) from error
    found = {node.name: node for node in tree.body if isinstance(node, ast.ClassDef | ast.FunctionDef)}
    passed_on = _passed_on(tree)
    if name in passed_on:
        return signature(passed_on[name])
    if name not in found:
        raise UserError(f"_target_: {target} names nothing in {module}; {did_you_mean(name, [*found, *passed_on])}")
    return _read(found[name], found, passed_on)


def not_python(error: SyntaxError) -> UserError:
    """The sentence for a file that cannot be read as Python."""
    return UserError(f"{error.filename}, line {error.lineno}: this is not Python: {error.msg}")


def _source(module: str, target: str) -> Path:
    try:
        spec = importlib.util.find_spec(module) if module else None
    except SyntaxError as error:  # of a package around it
        raise not_python(error) from error
    except (ImportError, ValueError):
        spec = None
    if spec is None or spec.origin is None or not spec.origin.endswith(".py"):
        raise UserError(f"_target_: {target} cannot be found: write package.module.Name of something that is installed")
    return Path(spec.origin)


def _passed_on(tree: ast.Module) -> dict[str, str]:
    """Names that a module imports from elsewhere, and their full paths."""
    nodes = [node for node in tree.body if isinstance(node, ast.ImportFrom) and node.module and not node.level]
    return {alias.asname or alias.name: f"{node.module}.{alias.name}" for node in nodes for alias in node.names}


def _read(node: ast.ClassDef | ast.FunctionDef, module: dict[str, Any], passed_on: dict[str, str]) -> Signature:
    if isinstance(node, ast.FunctionDef):
        return _from_arguments(node.args)
    for child in node.body:
        if isinstance(child, ast.FunctionDef) and child.name == "__init__":
            return _from_arguments(child.args)
    fields = [child for child in node.body if isinstance(child, ast.AnnAssign) and isinstance(child.target, ast.Name)]
    if fields and any("dataclass" in ast.unparse(decorator) for decorator in node.decorator_list):
        types = {field.target.id: _type(field.annotation) for field in fields}  # type: ignore[union-attr]
        return Signature(types, frozenset(f.target.id for f in fields if f.value is None), {})  # type: ignore[union-attr]
    for base in node.bases:  # an inherited __init__
        if isinstance(base, ast.Name) and base.id in module:
            return _read(module[base.id], module, passed_on)
        if isinstance(base, ast.Name) and passed_on.get(base.id, "").startswith("etude."):
            return signature(passed_on[base.id])
    return Signature({}, frozenset(), {})


def _from_arguments(arguments: ast.arguments) -> Signature:
    types = {argument.arg: _type(argument.annotation) for argument in arguments.kwonlyargs}
    by_keyword = [*zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True)]
    places = [*arguments.posonlyargs, *arguments.args]
    by_place = zip(places[len(places) - len(arguments.defaults) :], arguments.defaults, strict=True)
    values = {argument.arg: default.value for argument, default in (*by_place, *by_keyword) if _is_plain(default)}
    return Signature(types, frozenset(argument.arg for argument, default in by_keyword if default is None), values)


def _is_plain(default: ast.expr | None) -> TypeGuard[ast.Constant]:
    return isinstance(default, ast.Constant)


def _type(annotation: ast.expr | None) -> Any:
    """The plain types `int`, `float | None`, `list[str]`, `Literal[...]`; anything else is Any."""
    if isinstance(annotation, ast.Name):
        return _NAMES.get(annotation.id, Any)
    if isinstance(annotation, ast.Constant) and annotation.value is None:
        return None
    if isinstance(annotation, ast.BinOp) and isinstance(annotation.op, ast.BitOr):
        left, right = _type(annotation.left), _type(annotation.right)
        return Any if Any in (left, right) else left | right
    if isinstance(annotation, ast.Subscript):
        if isinstance(annotation.value, ast.Name) and annotation.value.id == "Literal":
            return Literal[ast.literal_eval(annotation.slice)]
        return _type(annotation.value)
    return Any
