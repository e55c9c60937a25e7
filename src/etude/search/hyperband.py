"""Hyperband as W&B has it: stop a trial that falls behind the others at one of several bands of validations."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import count, islice, takewhile
from typing import Any

from etude.errors import UserError, did_you_mean

Curve = Mapping[int, float]  # step of a validation -> the objective there


@dataclass(frozen=True)
class Hyperband:
    """A stopping rule with bands of validations, the n-th being the n-th with a finite value.

    Attributes:
        min_iter: the first band; the next is `eta` times as far, and so on without end.
        max_iter: in place of `min_iter`: the bands are `max_iter / eta**k` for k = 1, ..., `s`.
        s: how many these are at most.
        eta: at each band, the best of so many trials goes on.
        strict: whether the value at the band is judged, or else the best so far.
    """

    min_iter: int | None = None
    max_iter: int | None = None
    s: int = 0
    eta: float = 3
    strict: bool = True

    def __str__(self) -> str:
        """Say what is compared, and where."""
        bands = ", ".join(map(str, islice(self.bands(), 4)))
        judged = "the value there" if self.strict else "the best value so far"
        more, strict = "" if self.max_iter else ", ...", str(self.strict).lower()
        return f"Hyperband at validation {bands}{more} compares {judged} (strict: {strict})"

    def bands(self) -> Iterator[int]:
        """Yield the bands in ascending order, without end if `max_iter` is not given."""
        if self.max_iter is not None:
            bands = [int(self.max_iter / self.eta**k) for k in range(1, self.s + 1)]
            yield from sorted(band for band in bands if band >= 1)
        elif self.min_iter is not None:
            yield from (int(self.min_iter * self.eta**k) for k in count())

    def stops(self, curve: Curve, others: Sequence[Curve], *, maximize: bool) -> bool:
        """Return whether the trial is strictly worse than the best share of all trials at the last band it reached."""
        own, *rest = (_finite(one, maximize=maximize) for one in (curve, *others))
        reached = [*takewhile(lambda band: band <= len(own), self.bands())]
        if not reached:
            return False
        band = reached[-1]
        there = sorted(values[band - 1] for values in (own, *rest) if len(values) >= band)
        return (own[band - 1] if self.strict else min(own)) > there[int(len(there) / self.eta)]


def read_hyperband(node: Any, where: str) -> Hyperband:
    """Read `early_terminate` of a sweep file.

    Raises:
        UserError: it is not valid.
    """
    known = ("type", "min_iter", "max_iter", "s", "eta", "strict")
    if not isinstance(node, Mapping) or node.get("type") != "hyperband":
        raise UserError(f"{where} must be {{type: hyperband, min_iter: 3}}, the only type that W&B has")
    for key, value in node.items():
        if key not in known:
            raise UserError(f"{where}.{key} is not a key of hyperband; {did_you_mean(str(key), known)}")
        least = 1 if key != "s" else 0
        if key in ("min_iter", "max_iter", "s") and (type(value) is not int or value < least):
            raise UserError(f"{where}.{key} must be a whole number, {least} or more, not {value!r}")
    eta, strict = node.get("eta", 3), node.get("strict", True)
    if isinstance(eta, bool) or not isinstance(eta, int | float) or not 1 < eta < math.inf:
        raise UserError(f"{where}.eta must be a number above 1, not {eta!r}")
    if not isinstance(strict, bool):
        raise UserError(f"{where}.strict must be true or false, not {strict!r}")
    if "max_iter" in node and "s" not in node:
        raise UserError(f"{where}.max_iter needs s, the number of bands before it")
    if "max_iter" not in node and "min_iter" not in node:
        raise UserError(f"{where} needs min_iter, the validations before the first band; or max_iter and s")
    made = Hyperband(node.get("min_iter"), node.get("max_iter"), node.get("s", 0), eta, strict)
    if next(made.bands(), None) is None:
        raise UserError(f"{where} has no band: max_iter / eta is below 1, or s is 0")
    return made


def _finite(curve: Curve, *, maximize: bool) -> list[float]:
    """Return the finite values in the order of their steps; the lower, the better."""
    return [-curve[step] if maximize else curve[step] for step in sorted(curve) if math.isfinite(curve[step])]
