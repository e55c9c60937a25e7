"""Samplers and pruners of Optuna's, named by a word (`tpe`) or by a node with `_target_` and arguments."""

import logging
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from inspect import Parameter, signature
from typing import TYPE_CHECKING, Any

from etude.errors import UserError, did_you_mean

if TYPE_CHECKING:
    from optuna.pruners import BasePruner
    from optuna.samplers import BaseSampler

logger = logging.getLogger(__name__)

_NO_MORE = {  # arguments of earlier versions of Optuna, which does what they say, or nothing
    *("consider_prior", "prior_weight", "consider_magic_clip", "consider_endpoints", "warn_independent_sampling"),
    *("n_ehvi_candidates", "restart_strategy", "inc_popsize", "constraints_func"),
}
_RENAMED = {"motpe": "tpe"}  # which has several objectives now
_OF_ONE_SEQUENCE = ("QMCSampler", "GridSampler")


@dataclass(frozen=True)
class Sampler:
    """How samplers are made.

    Attributes:
        make: makes one from a seed.
        seed: that the node gives, if it does.
        one_sequence: whether it draws one sequence for the whole search.
        is_grid: whether it is the grid, which takes the values from the search space.
    """

    make: "Callable[[int], BaseSampler]"
    seed: int | None = None
    one_sequence: bool = False
    is_grid: bool = False


def read_sampler(node: Any, where: str) -> Sampler:
    """Read a sampler.

    Args:
        node: a word such as `tpe` or `TPESampler`, or {"_target_": "optuna.samplers.TPESampler", ...}.
        where: its place in error messages.

    Raises:
        UserError: there is no such sampler, or an argument is wrong.
    """
    kind, arguments = _read(node, "sampler", where)
    seed = arguments.pop("seed", None)
    if seed is not None and type(seed) is not int:
        raise UserError(f"{where}.seed must be a whole number, not {seed!r}")
    name = kind.__name__
    if name == "GridSampler":
        return Sampler(partial(kind, {}), seed, one_sequence=True, is_grid=True)
    make = partial(_make, kind, arguments, where)
    make(seed or 0)  # a mistake in the arguments is told now
    return Sampler(make, seed, name in _OF_ONE_SEQUENCE)


def read_pruner(node: Any, where: str) -> "BasePruner":
    """Read a pruner; arguments as in `read_sampler`.

    Raises:
        UserError: there is no such pruner, or an argument is wrong.
    """
    pruner: BasePruner = _make(*_read(node, "pruner", where), where, None)
    return pruner


def _read(node: Any, kind: str, where: str) -> tuple[type, dict[str, Any]]:
    """Return the class of a node, and its arguments without those that are null or of an earlier Optuna."""
    given = {"_target_": node} if isinstance(node, str) else node
    if not isinstance(given, Mapping) or not isinstance(given.get("_target_"), str):
        raise UserError(
            f"{where} must be a word, such as {'tpe' if kind == 'sampler' else 'median'}, or have a _target_"
        )
    made = _find(given["_target_"], kind, where)
    known = signature(made).parameters
    needed = [name for name, one in known.items() if one.default is one.empty and one.kind not in (2, 4)]
    arguments = {str(key): value for key, value in given.items() if str(key)[:1] != "_"}
    arguments = {key: value for key, value in arguments.items() if value is not None or key in needed}
    if old := [key for key in arguments if key in _NO_MORE]:
        logger.warning("%s: left out, as today's Optuna chooses it itself: %s", where, ", ".join(old))
    arguments = {key: value for key, value in arguments.items() if key not in old}
    is_open = any(one.kind is Parameter.VAR_KEYWORD for one in known.values())
    if not is_open and (other := [key for key in arguments if key not in known]):
        raise UserError(f"{where}.{other[0]} is not an argument of {made.__name__}; {did_you_mean(other[0], known)}")
    if missing := [name for name in needed if name not in given and name != "search_space"]:
        raise UserError(
            f"{where}: {made.__name__} needs {missing[0]}: {{_target_: {made.__name__}, {missing[0]}: ...}}"
        )
    return made, arguments


def _find(target: str, kind: str, where: str) -> type:
    """Return the class that a word or a dotted path names."""
    if "." in target and not target.startswith("optuna."):
        from hydra.utils import get_class

        from etude.config.signature import signature as check_importable

        check_importable(target)
        return get_class(target)
    module = import_module(f"optuna.{kind}s")  # late, as Optuna takes a second to import
    names = {
        _short(name, kind): name for name in module.__all__ if name.endswith(kind.capitalize()) and "Base" not in name
    }
    word = _short(target.rpartition(".")[2], kind)
    word = _RENAMED.get(word, word)
    if word not in names:
        raise UserError(f"{where}: Optuna has no {kind} {target!r}; {did_you_mean(word, names)}")
    found: type = getattr(module, names[word])
    return found


def _short(name: str, kind: str) -> str:
    """Return the word for a class: `successivehalving` for SuccessiveHalvingPruner and successive_halving."""
    return name.lower().replace("_", "").removesuffix(kind)


def _make(made: type, arguments: Mapping[str, Any], where: str, seed: int | None) -> Any:
    """Make a sampler or pruner, and those among its arguments."""
    own = {key: _make_argument(value, f"{where}.{key}", seed) for key, value in arguments.items()}
    if seed is not None and "seed" in signature(made).parameters:
        own.setdefault("seed", seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that a class is experimental would be said for each trial
        try:
            return made(**own)
        except (TypeError, ValueError, ImportError) as error:
            raise UserError(f"{where}: {made.__name__}: {' '.join(str(error).split())}") from error


def _make_argument(value: Any, where: str, seed: int | None) -> Any:
    if not isinstance(value, Mapping) or "_target_" not in value:
        return value
    kind = "pruner" if where.endswith("pruner") else "sampler"
    return _make(*_read(value, kind, where), where, seed)
