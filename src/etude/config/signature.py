"""Tell which parameters a `_target_` has, which a config may or must give."""

import importlib.util
import inspect
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from traceback import extract_tb
from types import ModuleType, NoneType, UnionType
from typing import Any, Literal, Union, get_args, get_origin

from etude.errors import UserError, did_you_mean
from etude.lean_import import lean_imports

_PLAIN = {int, float, bool, str, list, dict, tuple, NoneType}


@dataclass(frozen=True)
class Signature:
    """The parameters of a target, which a config may or must give.

    Attributes:
        keywords: name -> type of all parameters that can be given by name; Any if the annotation is not a plain type.
        required: keyword-only parameters without a default.
        leading: positional parameters without a default, in order.
        defaults: the defaults of all parameters that have one.
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


def signature_of(node: Mapping[str, Any], path: str) -> Signature:
    """Return the signature of a part's `_target_` as it applies to its config.

    Args:
        node: the config of the part.
        path: its dotted key, for messages.

    Raises:
        UserError: as `signature`, or it is no dotted path.
    """
    target = node["_target_"]
    if not isinstance(target, str) or not all(name.isidentifier() for name in target.split(".")):
        raise UserError(f"{path}._target_ must name a class, such as package.module.Name, not {target!r}")
    return signature(target).for_config(bool(node.get("_partial_")))


@cache
def signature(target: str) -> Signature:
    """Import the class or function `target`, a dotted path, and return its signature, without `self`.

    Raises:
        UserError: there is no such module or no such name in it, or the module cannot be imported.
    """
    try:
        part = _find(target)
    except UserError as error:
        if hidden := _say_what_hides(target.partition(".")[0]):
            raise UserError(f"_target_: {target}: {hidden}") from error
        raise
    try:
        parameters = inspect.signature(part, eval_str=True).parameters.values()
    except (TypeError, ValueError):  # written in C
        return Signature({}, open=True)
    except Exception:  # an annotation that only a type checker can evaluate
        parameters = inspect.signature(part).parameters.values()
    return _from_parameters(parameters)


def _find(target: str) -> Any:
    module, _, name = target.rpartition(".")
    try:
        with lean_imports():  # a module of the user's may import Lightning
            holder = importlib.import_module(module or target)
    except ModuleNotFoundError as error:
        if error.name is None or not f"{module or target}.".startswith(f"{error.name}."):
            raise not_imported(target, error) from error
        raise UserError(
            f"_target_: {target} cannot be found: write package.module.Name of what is installed or lies in this folder"
        ) from error
    except SyntaxError as error:
        raise UserError(f"{error.filename}, line {error.lineno}: this is not Python: {error.msg}") from error
    except Exception as error:
        raise not_imported(target, error) from error
    part = getattr(holder, name, None) if module else holder
    if part is None and hasattr(holder, "__path__") and importlib.util.find_spec(target) is not None:
        part = importlib.import_module(target)
    if isinstance(part, ModuleType):
        raise UserError(f"_target_: {part.__name__} is a module: write {part.__name__}.NAME, a class or function in it")
    if part is None:
        names = [one for one, value in vars(holder).items() if callable(value) and not one.startswith("_")]
        raise UserError(f"_target_: {target} names nothing in {module}; {did_you_mean(name, names)}")
    return part


def _say_what_hides(name: str) -> str:
    """Say which file Python imports in place of the user's module of this name; "" if it imports that."""
    here = Path.cwd()
    own = next((path for path in (here / f"{name}.py", here / name) if path.exists()), None)
    spec = importlib.util.find_spec(name) if own else None
    if own is None or spec is None or str(spec.origin or own).startswith(str(own)):
        return ""
    return f"{own} is not imported, for {spec.origin} has its name: rename yours"


def not_imported(target: str, error: BaseException) -> UserError:
    """Make the error for a target whose module raises an error on import."""
    own = [frame for frame in extract_tb(error.__traceback__) if not frame.filename.startswith("<frozen")]
    where = f"{own[-1].filename}, line {own[-1].lineno}" if own else "its module"
    return UserError(f"_target_: {target} cannot be imported: {where}: {error}; fix it, or install what it needs")


def _from_parameters(parameters: Iterable[inspect.Parameter]) -> Signature:
    parameters = [*parameters]
    named = [one for one in parameters if one.kind in (one.POSITIONAL_OR_KEYWORD, one.KEYWORD_ONLY)]
    bare = [one for one in named if one.default is one.empty]
    return Signature(
        {one.name: one.annotation if _is_plain(one.annotation) else Any for one in named},
        frozenset(one.name for one in bare if one.kind is one.KEYWORD_ONLY),
        tuple(one.name for one in bare if one.kind is one.POSITIONAL_OR_KEYWORD),
        {one.name: one.default for one in named if one.default is not one.empty},
        any(one.kind is one.VAR_KEYWORD for one in parameters),
        any(one.kind is one.KEYWORD_ONLY for one in named),
    )


def _is_plain(hint: Any) -> bool:
    """Return whether a type says how a value of YAML looks: `int`, `float | None`, `list[str]`, `Literal["a", "b"]`."""
    if get_origin(hint) in (UnionType, Union):
        return all(map(_is_plain, get_args(hint)))
    if get_origin(hint) is Literal:
        return all(type(value) in _PLAIN for value in get_args(hint))
    return (get_origin(hint) or hint) in _PLAIN
