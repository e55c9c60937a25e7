"""What W&B has no word for: the block `search:` of a sweep file, which W&B ignores, and keys of `hydra.sweeper`."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from fractions import Fraction
from itertools import pairwise
from typing import Any

from etude.errors import UserError, did_you_mean
from etude.search.search import Objective, Promotion


@dataclass(frozen=True)
class Options:
    """How trials are asked for, stopped and promoted.

    Attributes:
        sampler: a sampler of Optuna's, by a word or a node; None: that of the method.
        pruner: a pruner of Optuna's, by a word or a node.
        manner: `stop` ends trials that fall behind, `promote` pauses all and lets the best go on.
        rungs: of promotion: ascending shares of the budget, the last 1; by default 1/eta^2, 1/eta and 1.
        eta: of promotion: at each rung, one in so many goes on.
        directions: metric -> `minimize` or `maximize`, for a search with several objectives.
        constraints: key of a result -> what it may be at most.
        seeds: of each trial, whose value is the mean over them; 0: the seed of the config alone.
        n_jobs: trials at once; None: as many as the launcher has room for.
    """

    sampler: Any = None
    pruner: Any = None
    manner: str | None = None
    rungs: tuple[float, ...] | None = None
    eta: int | None = None
    directions: Mapping[str, str] = field(default_factory=dict)
    constraints: Mapping[str, float] = field(default_factory=dict)
    seeds: int = 0
    n_jobs: int | None = None

    @property
    def promotion(self) -> Promotion | None:
        """How trials are promoted, if they are."""
        eta = self.eta or Promotion.eta
        return Promotion(self.rungs or (eta**-2, 1 / eta, 1.0), eta) if self.manner == "promote" else None

    @property
    def objectives(self) -> tuple[Objective, ...]:
        """The metrics of `directions`."""
        return tuple(Objective(name, way == "maximize") for name, way in self.directions.items())


def read_options(node: Any, where: str) -> Options:
    """Read and check the options of a search.

    Raises:
        UserError: an option is not valid; the message names it.
    """
    if not isinstance(node, Mapping):
        raise UserError(f"{where} must hold keys, such as  {where.rpartition(' ')[2]}: {{manner: promote}}")
    known = [one.name for one in fields(Options)]
    for key in node:
        if key not in known:
            raise UserError(f"{where}.{key} is not a key of it; {did_you_mean(str(key), known)}")
    given = {key: value for key, value in node.items() if value is not None}
    for key, least in (("eta", 2), ("seeds", 1), ("n_jobs", 1)):
        if key in given and (type(given[key]) is not int or given[key] < least):
            raise UserError(f"{where}.{key} must be a whole number, {least} or more, not {given[key]!r}")
    if given.get("manner", "stop") not in ("stop", "promote"):
        raise UserError(f"{where}.manner is {given['manner']!r}: write stop or promote")
    if "rungs" in given:
        given["rungs"] = _read_rungs(given["rungs"], f"{where}.rungs")
    for key, check, hint in (
        ("directions", lambda way: way in ("minimize", "maximize"), "metrics to minimize or maximize"),
        ("constraints", _is_number, "numbers of a result to what they may be at most"),
    ):
        if key in given and not (isinstance(given[key], Mapping) and all(map(check, given[key].values()))):
            raise UserError(f"{where}.{key} must map {hint}, not be {given[key]!r}")
    made = Options(**given)
    for key in ("rungs", "eta"):
        if key in given and made.manner != "promote":
            raise UserError(f"{where}.{key} goes with manner: promote")
    if made.manner == "promote" and made.pruner:
        raise UserError(
            f"{where}: a pruner stops trials and manner: promote lets the best go on: leave one of them out"
        )
    return made


def _read_rungs(rungs: Any, where: str) -> tuple[float, ...]:
    try:
        read = tuple(float(Fraction(str(rung))) for rung in (rungs if isinstance(rungs, list) else [None]))
    except (ValueError, ZeroDivisionError):
        raise UserError(
            f"{where} must be a list of shares of the budget, such as [1/9, 1/3, 1], not {rungs!r}"
        ) from None
    if not read or read[-1] != 1 or read[0] <= 0 or any(one >= other for one, other in pairwise(read)):
        raise UserError(f"{where} must ascend from above 0 to 1, as [1/9, 1/3, 1] does, not be {rungs}")
    return read


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
