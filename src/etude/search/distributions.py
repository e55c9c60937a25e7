"""W&B's distributions. Each is a quantile: the value at a probability.

Random search takes it at a random number that is a function of the seed, the number of the draw and the key. A longer
search therefore begins with the runs of a shorter one, and adding or removing a parameter does not change the values of
the others. A sampler of Optuna's draws values where it has the distribution, else the probability.
"""

import json
import math
from bisect import bisect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from random import Random
from statistics import NormalDist
from typing import TYPE_CHECKING, Any

from etude.errors import UserError, did_you_mean
from etude.search.search import Dimension

if TYPE_CHECKING:
    from optuna.distributions import BaseDistribution

Numbers = Mapping[str, Any]

_LEAST = 2.0**-53  # the probability nearest to 0, and to 1; some quantiles are infinite there


@dataclass(frozen=True)
class Distribution:
    """What a parameter is drawn from.

    Attributes:
        text: how the file describes it.
        quantile: the value at a probability, above 0 and below 1.
        native: makes Optuna's distribution of the same values; None: it has none.
        values: the list that it draws from, if there is one.
    """

    text: str
    quantile: Callable[[float], Any]
    native: "Callable[[], BaseDistribution] | None" = None
    values: Sequence[Any] = ()

    def dimension(self) -> Dimension:
        """Return the dimension of a search that has these values."""
        if self.native:
            return Dimension(self.native(), self.text)

        def convert(drawn: float) -> Any:
            return self.quantile(min(max(drawn, _LEAST), 1.0 - _LEAST))

        return Dimension(_float(0.0, 1.0), self.text, convert, self.values)

    def draw(self, at: float) -> Any:
        """Return what is drawn in that dimension to have the value at the probability `at`."""
        return self.quantile(at) if self.native else at


def share(seed: int, number: int, key: str) -> float:
    """Return a uniform random number, above 0 and below 1, for one parameter of one draw."""
    return Random(f"{seed}/{number}/{key}").random() or 0.5  # a normal distribution has no quantile at 0


def read_distribution(parameter: Numbers, where: str) -> Distribution:
    """Read the distribution of a parameter.

    Args:
        parameter: as a sweep file describes it, such as {"min": 0.1, "max": 1.0}.
        where: the name of the parameter in error messages.

    Raises:
        UserError: the distribution is unknown, or one of its numbers is missing or wrong.
    """
    text = json.dumps(parameter, default=str)
    if "values" in parameter:
        return choice(parameter["values"], text, _probabilities(where, parameter))
    name = str(parameter.get("distribution") or _default_distribution(parameter))
    if name not in _KNOWN:
        raise UserError(f"{where}: there is no distribution {name!r} to draw from; {did_you_mean(name, _KNOWN)}")
    kind = _KINDS[name.removeprefix("q_")]
    step = {"q": 1} if name.startswith("q_") else {}
    given = kind.numbers | step | {key: value for key, value in parameter.items() if key != "distribution"}
    _check(where, name, given, known=[*kind.numbers, *step])
    if step:
        made = Distribution(text, lambda at: _round_to_multiple(kind.quantile(at, given), given["q"]))
    else:
        native = kind.native
        made = Distribution(text, lambda at: kind.quantile(at, given), native and (lambda: native(given)))
    try:
        made.quantile(_LEAST)
        made.quantile(1.0 - _LEAST)
    except OverflowError as error:
        hint = "; its numbers are logarithms" if "log" in name and not name.endswith("_values") else ""
        hint += f", and those of {name}_values are not" if hint and "uniform" in name else ""
        raise UserError(f"{where}: {name} draws numbers that are too large{hint}") from error
    return made


def choice(values: Sequence[Any], text: str, probabilities: Sequence[float] | None = None) -> Distribution:
    """Return the distribution over a list of values, with their probabilities or, without these, with equal ones."""
    bounds = [*accumulate(probabilities or [1 / len(values)] * len(values))]

    def native() -> "BaseDistribution":
        from optuna.distributions import CategoricalDistribution

        return CategoricalDistribution(values)

    plain = all(value is None or isinstance(value, bool | int | float | str) for value in values)
    is_native = probabilities is None and plain and len({*values}) == len(values)  # Optuna takes 1 for True
    return Distribution(
        text, lambda at: values[min(bisect(bounds, at), len(values) - 1)], native if is_native else None, values
    )


def listed(parameter: Numbers, where: str) -> list[Any]:
    """Return the values of a parameter in a grid, as W&B does: `q_uniform` leaves its maximum out.

    Raises:
        UserError: it is drawn from a distribution that has no list of values, or one of its numbers is wrong.
    """
    if "values" in parameter:
        return list(parameter["values"])
    name = str(parameter.get("distribution") or _default_distribution(parameter))
    read_distribution(parameter, where)
    if name == "int_uniform":
        return list(range(parameter["min"], parameter["max"] + 1))
    if name != "q_uniform":
        raise UserError(
            f"{where}: a grid takes values: [...], int_uniform or q_uniform, and {name} has no list of values"
        )
    low, q = parameter["min"], parameter.get("q", 1)
    count = math.ceil((parameter["max"] - low) / q - 1e-9)
    values = [low + number * q for number in range(count)]
    return values if isinstance(low, int) and isinstance(q, int) else [float(f"{value:.12g}") for value in values]


def _default_distribution(parameter: Numbers) -> str:
    """Return the distribution that W&B takes if the parameter names none."""
    if "mu" in parameter or "sigma" in parameter:
        return "normal"
    whole = all(type(parameter.get(bound)) is int for bound in ("min", "max"))
    return "int_uniform" if whole else "uniform"


def _lerp(u: float, low: float, high: float) -> float:
    return _between(low, low + u * (high - low), high)


def _between(low: Any, value: Any, high: Any) -> Any:
    """Return the value, or a bound that rounding has passed."""
    return min(max(value, low), high)


def _normal(u: float, p: Numbers) -> float:
    return NormalDist(p["mu"], p["sigma"]).inv_cdf(u)


def _beta(u: float, p: Numbers) -> float:
    from scipy.special import betaincinv

    return float(betaincinv(p["a"], p["b"], u))


def _log_values(u: float, p: Numbers) -> float:
    return float(_between(p["min"], math.exp(_lerp(u, math.log(p["min"]), math.log(p["max"]))), p["max"]))


def _inv_log_values(u: float, p: Numbers) -> float:
    return float(_between(p["min"], math.exp(-_lerp(u, -math.log(p["max"]), -math.log(p["min"]))), p["max"]))


def _float(low: float, high: float, *, log: bool = False) -> "BaseDistribution":
    from optuna.distributions import FloatDistribution  # late, as Optuna takes a second to import

    return FloatDistribution(low, high, log=log)


def _int(p: Numbers) -> "BaseDistribution":
    from optuna.distributions import IntDistribution

    return IntDistribution(p["min"], p["max"])


@dataclass(frozen=True)
class _Kind:
    """A distribution with its numbers open: those that it has, with their defaults, and what it is at them."""

    numbers: dict[str, Any]
    quantile: Callable[[float, Numbers], Any]
    native: "Callable[[Numbers], BaseDistribution] | None" = None


_MIN_MAX: dict[str, Any] = {"min": None, "max": None}  # no defaults
_MU_SIGMA: dict[str, Any] = {"mu": 0.0, "sigma": 1.0}

_KINDS = {
    "uniform": _Kind(_MIN_MAX, lambda u, p: _lerp(u, p["min"], p["max"]), lambda p: _float(p["min"], p["max"])),
    "int_uniform": _Kind(
        _MIN_MAX,
        lambda u, p: _between(p["min"], p["min"] + math.floor(u * (p["max"] - p["min"] + 1)), p["max"]),
        _int,
    ),
    "log_uniform": _Kind(
        _MIN_MAX,
        lambda u, p: math.exp(_lerp(u, p["min"], p["max"])),
        lambda p: _float(math.exp(p["min"]), math.exp(p["max"]), log=True),
    ),
    "log_uniform_values": _Kind(_MIN_MAX, _log_values, lambda p: _float(p["min"], p["max"], log=True)),
    "inv_log_uniform": _Kind(
        _MIN_MAX,
        lambda u, p: math.exp(-_lerp(u, p["min"], p["max"])),
        lambda p: _float(math.exp(-p["max"]), math.exp(-p["min"]), log=True),
    ),
    "inv_log_uniform_values": _Kind(_MIN_MAX, _inv_log_values, lambda p: _float(p["min"], p["max"], log=True)),
    "normal": _Kind(_MU_SIGMA, _normal),
    "log_normal": _Kind(_MU_SIGMA, lambda u, p: math.exp(_normal(u, p))),
    "beta": _Kind({"a": 1.0, "b": 1.0}, _beta),
}

_KNOWN = [*_KINDS, *(f"q_{name}" for name in _KINDS if name != "int_uniform")]


def _check(where: str, name: str, given: Numbers, known: list[str]) -> None:
    for key, value in given.items():
        if key not in known:
            raise UserError(f"{where}: {name} takes no {key!r}; {did_you_mean(str(key), known)}")
        number = int if name == "int_uniform" else int | float
        if isinstance(value, bool) or not isinstance(value, number) or not math.isfinite(value):
            kind = "a whole number" if name == "int_uniform" else "a number"
            hint = "; YAML takes 1e-5 for text and 1.0e-5 for a number" if isinstance(value, str) else ""
            raise UserError(f"{where}.{key} must be {kind}, not {value!r}{hint}")
        if value <= 0 and (key in ("q", "sigma", "a", "b") or name.endswith("log_uniform_values")):
            raise UserError(f"{where}.{key} must be above 0, not {value!r}")
    if "min" in given and given["min"] > given["max"]:
        raise UserError(f"{where}.min={given['min']} is above its max={given['max']}")


def _round_to_multiple(value: float, of: float) -> float:
    """Round to the nearest multiple of `of`, an integer if `of` is one, without the noise of binary fractions."""
    nearest = round(value / of) * of
    return nearest if isinstance(of, int) else float(f"{nearest:.12g}")


def _probabilities(where: str, parameter: Numbers) -> Sequence[float] | None:
    if "probabilities" not in parameter:
        return None
    values, chances = parameter["values"], parameter["probabilities"]
    if not (
        isinstance(chances, list)
        and len(chances) == len(values)
        and all(isinstance(chance, int | float) and chance >= 0 for chance in chances)
        and math.isclose(sum(chances), 1, rel_tol=1e-6)
    ):
        raise UserError(f"{where}.probabilities must hold a number for each of the values, 1 in all")
    return chances
