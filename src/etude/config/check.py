"""Check names, types and `_target_`s of a config, before torch or other heavy modules are imported."""

import re
from collections.abc import Mapping
from dataclasses import MISSING, fields, is_dataclass
from types import NoneType, UnionType
from typing import Any, Literal, Union, get_args, get_origin

from etude.config.explain import no_such_key
from etude.config.schema import (
    GIVEN,
    Factory,
    Model,
    Optimizer,
    Part,
    Parts,
    Run,
    hints_of,
)
from etude.config.signature import signature_of
from etude.errors import UserError

_OWN_KEYS = {"_target_", "_partial_", "_convert_", "_recursive_", "_args_"}
OF_HYDRA = {"hydra", "optimized_metric"}
"""Keys beside those of a run: Hydra's own node, and the name of `objective` in files for lightning-hydra-template."""

_LEFT_TO_OTHERS = {*OF_HYDRA, "choices"}
_OF_STEP = "the code gives it nothing when it is made; for a function of the step, write a class with __call__(step)"
_UNIONS = (UnionType, Union)  # of types; of a type and a Literal
_LARGEST = 2**63 - 1  # the largest integer in a tensor (int64)

Node = Mapping[str, Any]


def check(config: Node, schema: type = Run) -> None:
    """Check every name, type and `_target_` of `config` against the schema and the signatures.

    Args:
        config: the resolved config.
        schema: a dataclass of `schema.py`.

    Raises:
        UserError: the first mistake: its key, what it should be, and the nearest valid name.
    """
    _check_section(config, schema, "")


def _check_section(node: Any, schema: type, path: str) -> None:
    _require_section(node, path, "a section of keys", f"write {path}.KEY=...")
    hints = hints_of(schema)
    if schema is Model:
        hints = hints | _hints_of_class(node, path)
    _check_no_other_keys(node, hints, path)
    optional = {field.name for field in fields(schema) if field.default is not MISSING}
    for name, hint in hints.items():
        where = _join(path, name)
        if name not in node and name in optional:
            continue
        if name not in node:
            raise UserError(f"{where} is missing: the config must say it, for instance {where}=...")
        _check_value(node, name, hint, where)


def check_model(node: Node) -> None:
    """Check the section `model` alone; raises as `check`."""
    _check_section(node, Model, "model")


def _hints_of_class(node: Node, path: str) -> dict[str, Any]:
    """Return the parameters of the model's class that `Model` does not have, and that are required or in the config."""
    if "_target_" not in node:
        return {}
    expected = signature_of(node, path)
    needed = expected.required.difference(GIVEN["model"])
    own = {name: hint for name, hint in expected.keywords.items() if name not in hints_of(Model)}
    return {name: hint for name, hint in own.items() if name in needed or (name in node and name not in GIVEN["model"])}


def _join(path: str, name: str) -> str:
    return f"{path}.{name}" if path else name


def _check_value(parent: Node, name: str, hint: Any, where: str) -> None:
    value = _value(parent, name, where)
    if value is None and NoneType in get_args(hint):
        return
    if hint == Parts:
        _check_parts(value, where, GIVEN[name])
    elif hint is Optimizer:
        check_part(_without_groups(value, where), where, called=True)
    elif hint is Factory or hint == Factory | None:
        check_part(value, where, called=True)
    elif hint is Part or hint == Part | None or _is_part_of_a_part(value, hint, where):
        check_part(value, where)
    elif is_dataclass(hint):
        _check_section(value, hint, where)  # type: ignore[arg-type]
    elif not _conforms(value, hint):
        several = "; for several say seed=1,2,3" if where == "seed" else ""
        raise UserError(f"{where} must be {_describe(hint)}, not {value!r}{several}")
    elif type(value) is int and abs(value) > _LARGEST:
        raise UserError(f"{where} must lie between -{_LARGEST} and {_LARGEST}, not be {value}")


def _is_part_of_a_part(value: Any, hint: Any, where: str) -> bool:
    is_flag = where.startswith("trainer.")  # such as a profiler: Lightning takes no section that is no part
    return hint is Any and isinstance(value, Mapping) and ("_target_" in value or is_flag)


def _check_parts(node: Any, path: str, given: tuple[str, ...]) -> None:
    """Check a dictionary of parts, each of which gets the parameters `given` from the code."""
    _require_section(node, path, "a dictionary of parts")
    if "_target_" in node:
        raise UserError(f"{path} holds its parts by name: put _target_ and what follows it under {path}.NAME")
    for name in node:
        part = _value(node, name, f"{path}.{name}")
        if part is None:
            raise UserError(f"{path}.{name} must be a part, not None; to leave it out write ~{path}.{name}")
        check_part(part, f"{path}.{name}", given)


def _without_groups(node: Any, path: str) -> Any:
    """Check the parameter groups of an optimizer's node, and return the node without them."""
    if not isinstance(node, Mapping) or "groups" not in node:
        return node
    groups = _value(node, "groups", f"{path}.groups") or []
    if not _conforms(groups, list):
        raise UserError(f"{path}.groups must be a list of groups of parameters, not {groups!r}")
    for number, group in enumerate(groups):
        match = group.get("match") if isinstance(group, Mapping) else None
        try:
            re.compile(match)  # type: ignore[type-var]
        except (re.error, TypeError) as error:
            expected_text = 'a pattern for the names of parameters, such as {match: "norm|bias", weight_decay: 0.0}'
            raise UserError(f"{path}.groups[{number}] must have in `match` {expected_text} ({error})") from error
        if type(rate := group.get("lr", 1.0)) not in (int, float):
            raise UserError(f"{path}.groups[{number}].lr={rate} must be a number: times the schedule's rate")
    return {key: _value(node, key, f"{path}.{key}") for key in node if key != "groups"}


def check_part(node: Any, path: str, given: tuple[str, ...] = (), *, called: bool = False) -> None:
    """Check the part at `path` against the signature of its `_target_`.

    Args:
        node: the config of the part.
        path: its dotted key, for messages.
        given: the parameters that the code gives, so that the config need not.
        called: whether the code calls the part, so that it must have `_partial_: true`.

    Raises:
        UserError: the first mistake.
    """
    _require_section(node, path, "one of its variations")
    if "_target_" not in node:
        if "default" in node:  # misspelt: `defaults` would bring the class
            raise no_such_key(f"{path}.default", path, ())
        raise UserError(f"{path} names no _target_: its YAML file must say which class it configures")
    if "_partial_" in node:
        _check_value(node, "_partial_", bool, f"{path}._partial_")
    if called and not node.get("_partial_"):
        raise UserError(
            f"{path} is made by the code, with what it alone knows: write _partial_: true beside its _target_"
        )
    expected = signature_of(node, path)
    if not expected.open:
        of_code = expected.leading if expected.by_name_alone else ()
        known = [name for name in expected.keywords if name not in given or name not in of_code]
        _check_no_other_keys(node, known, path)
    for name in expected.required.difference(given):
        if name not in node:
            instead = _OF_STEP if path == "schedule" and name in expected.leading else "has no default to hide it"
            raise UserError(f"{path}.{name} is missing: {node['_target_']} needs it, and {instead}")
    for name, hint in expected.keywords.items():
        if name in node:
            _check_value(node, name, hint, f"{path}.{name}")


def _value(parent: Node, name: str, where: str) -> Any:
    if parent[name] == "???":
        raise UserError(f"{where} is left open (???): say {where}=...")
    return parent[name]


def _check_no_other_keys(node: Node, names: Any, path: str) -> None:
    for key in node:
        if key not in names and key not in _OWN_KEYS and not (path == "" and key in _LEFT_TO_OTHERS):
            target = str(node.get("_target_", ""))
            not_ours = "" if target.startswith("etude.") else target
            raise no_such_key(_join(path, str(key)), path or "the config", names, not_ours)


def _require_section(node: Any, path: str, what: str, way_out: str = "") -> None:
    """Check that the node is a section of keys: `model.position=rope` may be a typo for `model/position=rope`."""
    if not isinstance(node, Mapping):
        choice = f"{path.replace('.', '/')}={node if isinstance(node, str) else 'NAME'}"
        of_keys = ", whose file holds keys with their values" * isinstance(node, list)
        way_out = way_out or f"to choose a variation write {choice}{of_keys}"
        raise UserError(f"{path} must be {what}, not {node!r}; {way_out}")


def _conforms(value: Any, hint: Any) -> bool:
    if hint is Any:
        return True
    if get_origin(hint) in _UNIONS:
        return any(_conforms(value, option) for option in get_args(hint))
    if get_origin(hint) is Literal:
        return value in get_args(hint)
    if isinstance(value, bool) and hint in (int, float):
        return False
    hint = get_origin(hint) or hint  # the items of list[str] are not checked
    return isinstance(value, _ACCEPTED.get(hint, hint))


_ACCEPTED: dict[Any, Any] = {float: int | float, list: list, tuple: list, dict: Mapping}
_WORDS = {int: "a whole number", float: "a number", bool: "true or false", str: "a word", NoneType: "null"}


def _describe(hint: Any) -> str:
    if get_origin(hint) in _UNIONS:
        return " or ".join(_describe(option) for option in get_args(hint))
    if get_origin(hint) is Literal:
        options = get_args(hint)
        return f"one of {', '.join(map(str, options))}" if len(options) > 1 else str(options[0])
    return _WORDS.get(hint, f"a {getattr(hint, '__name__', hint)}")
