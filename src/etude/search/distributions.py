"""Random search with W&B's distributions; each value is a function of the seed, the number of the draw and the key.

A value is a quantile of its distribution at one uniform random number. A longer search therefore begins with the runs
of a shorter one, and adding or removing a parameter does not change the values of the others.
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
Quantile = Callable[[float, Numbers], Any]  # of a probability in (0, 1), given the parameter's numbers


def share(seed: int, number: int, key: str) -> float:
    """Return a uniform random number, above 0 and below 1, for one parameter of one draw."""
    return Random(f"{seed}/{number}/{key}").random() or 0.5  # a normal distribution has no quantile at 0


def draw(parameter: Numbers, at: float, where: str) -> Any:
    """Return the quantile of a parameter's distribution at the probability `at`.

    Args:
        parameter: as a sweep file describes it, such as {"min": 0.1, "max": 1.0}.
        at: above 0 and below 1.
        where: the name of the parameter in error messages.

    Raises:
        UserError: the distribution is unknown, or one of its numbers is missing or wrong.
    """
    if "values" in parameter:
        return _choose_value(where, parameter, at)
    name = str(parameter.get("distribution") or _default_distribution(parameter))
    if name not in _KNOWN:
        raise UserError(f"{where}: there is no distribution {name!r} to draw from; {did_you_mean(name, _KNOWN)}")
    defaults, quantile = _QUANTILES[name.removeprefix("q_")]
    given = defaults | {key: value for key, value in parameter.items() if key != "distribution"}
    _check(where, name, given, known=[*defaults, "q"] if name.startswith("q_") else [*defaults])
    try:
        value = quantile(at, given)
        return _round_to_multiple(value, given.get("q", 1)) if name.startswith("q_") else value
    except OverflowError as error:
        hint = "; its numbers are logarithms" if "log" in name and not name.endswith("_values") else ""
        hint += f", and those of {name}_values are not" if hint and "uniform" in name else ""
        raise UserError(f"{where}: {name} draws numbers that are too large{hint}") from error


def _default_distribution(parameter: Numbers) -> str:
    """Return the distribution that W&B takes if the parameter names none."""
    if "mu" in parameter or "sigma" in parameter:
        return "normal"
    whole = all(type(parameter.get(bound)) is int for bound in ("min", "max"))
    return "int_uniform" if whole else "uniform"


def _lerp(u: float, low: float, high: float) -> float:
    return low + u * (high - low)


def _normal(u: float, p: Numbers) -> float:
    return NormalDist(p["mu"], p["sigma"]).inv_cdf(u)


_MIN_MAX: dict[str, Any] = {"min": None, "max": None}  # no defaults
_MU_SIGMA: dict[str, Any] = {"mu": 0.0, "sigma": 1.0}

_QUANTILES: dict[str, tuple[dict[str, Any], Quantile]] = {  # name -> its numbers with their defaults, and its quantile
    "uniform": (_MIN_MAX, lambda u, p: _lerp(u, p["min"], p["max"])),
    "int_uniform": (_MIN_MAX, lambda u, p: p["min"] + math.floor(u * (p["max"] - p["min"] + 1))),
    "log_uniform": (_MIN_MAX, lambda u, p: math.exp(_lerp(u, p["min"], p["max"]))),
    "log_uniform_values": (_MIN_MAX, lambda u, p: math.exp(_lerp(u, math.log(p["min"]), math.log(p["max"])))),
    "inv_log_uniform": (_MIN_MAX, lambda u, p: math.exp(-_lerp(u, p["min"], p["max"]))),
    "inv_log_uniform_values": (_MIN_MAX, lambda u, p: math.exp(-_lerp(u, -math.log(p["max"]), -math.log(p["min"])))),
    "normal": (_MU_SIGMA, _normal),
    "log_normal": (_MU_SIGMA, lambda u, p: math.exp(_normal(u, p))),
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


def _round_to_multiple(value: float, of: float) -> float:
    """Round to the nearest multiple of `of`, an integer if `of` is one, without the noise of binary fractions."""
    nearest = round(value / of) * of
    return nearest if isinstance(of, int) else float(f"{nearest:.12g}")


def _choose_value(where: str, parameter: Numbers, at: float) -> Any:
    """Choose one of the parameter's `values`, with its `probabilities` or, without these, with equal probability."""
    values = parameter["values"]
    chances = parameter.get("probabilities", [1 / len(values)] * len(values))
    if not (
        isinstance(chances, list)
        and len(chances) == len(values)
        and all(isinstance(chance, int | float) and chance >= 0 for chance in chances)
        and math.isclose(sum(chances), 1, rel_tol=1e-6)
    ):
        raise UserError(f"{where}.probabilities must hold a number for each of the values, 1 in all")
    return values[min(bisect(list(accumulate(chances)), at), len(values) - 1)]
