"""Random search: what W&B's distributions give, where each value is a function of (seed, number of the draw, key).

A value is a quantile of its distribution, so that one uniform number decides it. A longer search therefore begins with
the runs of a shorter one, and a parameter that comes or goes leaves the values of the others as they were.
"""

import math
from bisect import bisect
from collections.abc import Callable, Mapping
from itertools import accumulate
from random import Random
from statistics import NormalDist
from typing import Any

from etude.errors import UserError, did_you_mean

Numbers = Mapping[str, Any]
Quantile = Callable[[float, Numbers], Any]  # of a share in (0, 1), given the parameter's numbers


def share(seed: int, number: int, key: str) -> float:
    """A uniform number above 0 and below 1, for one parameter of one draw."""
    return Random(f"{seed}/{number}/{key}").random() or 0.5  # 0 itself is no quantile of a normal distribution


def draw(parameter: Numbers, at: float, where: str) -> Any:
    """The value of a parameter at one share of its distribution.

    Args:
        parameter: as a sweep file describes it, such as {"min": 0.1, "max": 1.0}.
        at: above 0 and below 1.
        where: what a message calls the parameter.

    Raises:
        UserError: the distribution is unknown, or one of its numbers is missing or wrong.
    """
    if "values" in parameter:
        return _one_of(where, parameter, at)
    name = str(parameter.get("distribution") or _implied(parameter))
    if name not in _KNOWN:
        raise UserError(f"{where}: there is no distribution {name!r} to draw from; {did_you_mean(name, _KNOWN)}")
    defaults, quantile = _QUANTILES[name.removeprefix("q_")]
    given = defaults | {key: value for key, value in parameter.items() if key != "distribution"}
    _check(where, name, given, known=[*defaults, "q"] if name.startswith("q_") else [*defaults])
    value = quantile(at, given)
    return _multiple(value, given.get("q", 1)) if name.startswith("q_") else value


def _implied(parameter: Numbers) -> str:
    """The distribution that W&B takes where none is named."""
    if "mu" in parameter or "sigma" in parameter:
        return "normal"
    whole = all(type(parameter.get(bound)) is int for bound in ("min", "max"))
    return "int_uniform" if whole else "uniform"


def _between(share: float, low: float, high: float) -> float:
    return low + share * (high - low)


def _bell(share: float, p: Numbers) -> float:
    return NormalDist(p["mu"], p["sigma"]).inv_cdf(share)


_BOUNDS: dict[str, Any] = {"min": None, "max": None}  # no defaults
_BELL: dict[str, Any] = {"mu": 0.0, "sigma": 1.0}

_QUANTILES: dict[str, tuple[dict[str, Any], Quantile]] = {  # name -> its numbers with their defaults, and its quantile
    "uniform": (_BOUNDS, lambda u, p: _between(u, p["min"], p["max"])),
    "int_uniform": (_BOUNDS, lambda u, p: p["min"] + math.floor(u * (p["max"] - p["min"] + 1))),
    "log_uniform": (_BOUNDS, lambda u, p: math.exp(_between(u, p["min"], p["max"]))),
    "log_uniform_values": (_BOUNDS, lambda u, p: math.exp(_between(u, math.log(p["min"]), math.log(p["max"])))),
    "inv_log_uniform": (_BOUNDS, lambda u, p: math.exp(-_between(u, p["min"], p["max"]))),
    "inv_log_uniform_values": (_BOUNDS, lambda u, p: math.exp(-_between(u, -math.log(p["max"]), -math.log(p["min"])))),
    "normal": (_BELL, _bell),
    "log_normal": (_BELL, lambda u, p: math.exp(_bell(u, p))),
}


_KNOWN = [*_QUANTILES, *(f"q_{name}" for name in _QUANTILES if name != "int_uniform")]


def _check(where: str, name: str, given: Numbers, known: list[str]) -> None:
    for key, value in given.items():
        if key not in known:
            raise UserError(f"{where}: {name} takes no {key!r}; {did_you_mean(key, known)}")
        number = int if name == "int_uniform" else int | float
        if isinstance(value, bool) or not isinstance(value, number) or not math.isfinite(value):
            kind = "a whole number" if name == "int_uniform" else "a number"
            hint = "; YAML takes 1e-5 for text and 1.0e-5 for a number" if isinstance(value, str) else ""
            raise UserError(f"{where}.{key} must be {kind}, not {value!r}{hint}")
        if value <= 0 and (key in ("q", "sigma") or name.endswith("log_uniform_values")):
            raise UserError(f"{where}.{key} must be above 0, not {value!r}")
    if "min" in given and given["min"] > given["max"]:
        raise UserError(f"{where}.min={given['min']} is above its max={given['max']}")


def _multiple(value: float, of: float) -> float:
    """The nearest multiple, a whole number where `of` is one, without the noise of binary fractions."""
    nearest = round(value / of) * of
    return nearest if isinstance(of, int) else float(f"{nearest:.12g}")


def _one_of(where: str, parameter: Numbers, share: float) -> Any:
    """One of the values, each as probable as the others or as `probabilities` says."""
    values = parameter["values"]
    chances = parameter.get("probabilities", [1 / len(values)] * len(values))
    if not (
        isinstance(chances, list)
        and len(chances) == len(values)
        and all(isinstance(chance, int | float) and chance >= 0 for chance in chances)
        and math.isclose(sum(chances), 1, rel_tol=1e-6)
    ):
        raise UserError(f"{where}.probabilities must hold a number for each of the values, 1 in all")
    return values[min(bisect(list(accumulate(chances)), share), len(values) - 1)]
