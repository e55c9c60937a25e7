"""Which trial goes on: asynchronous successive halving (Li et al. 2020), as a function of what the rungs have shown.

Trials are trained to the first rung and pause there. At each rung, one in eta goes on: a trial is promoted once it is
among the best ⌊n/eta⌋ of the n that have come so far, without waiting for others to come.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import inf, isnan


@dataclass(frozen=True)
class Climber:
    """One trial on the rungs.

    Attributes:
        number: of the trial.
        values: the objective at each rung that it has come to, lower is better; nan and inf if it has diverged.
        to: the rung that it is trained to.
        ended: whether it can go no further: it is finished, pruned or has failed.
    """

    number: int
    values: Sequence[float]
    to: int
    ended: bool = False

    @property
    def paused(self) -> bool:
        """Whether it waits at the rung that it was trained to."""
        return not self.ended and len(self.values) == self.to + 1


def promote(climbers: Sequence[Climber], eta: int) -> Climber | None:
    """Return the trial to be promoted, at the highest rung where there is one."""
    for rung in reversed(range(_rungs(climbers))):
        ranked = _rank(climbers, rung)
        for climber in ranked[: len(ranked) // eta]:
            if climber.paused and climber.to == rung:
                return climber
    return None


def promote_last(climbers: Sequence[Climber], top: int) -> Climber | None:
    """Return the trial that is promoted although it is none of the best 1/eta, so that one comes to the top rung."""
    if any(len(climber.values) > top for climber in climbers):
        return None
    for rung in reversed(range(_rungs(climbers))):
        if waiting := [climber for climber in _rank(climbers, rung) if climber.paused and climber.to == rung]:
            return waiting[0]
    return None


def out_of_reach(climbers: Sequence[Climber], eta: int, n_trials: int) -> list[Climber]:
    """Return the paused trials that will never be promoted, whatever the others do: ⌊n_trials/eta⌋ are better.

    The best one is none of them, as one trial is always trained to its end.
    """
    found, most = [], max(1, n_trials // eta)
    for rung in range(_rungs(climbers)):
        found += [one for one in _rank(climbers, rung)[most:] if one.paused and one.to == rung]
    return found


def _rungs(climbers: Sequence[Climber]) -> int:
    return max((len(climber.values) for climber in climbers), default=0)


def _rank(climbers: Sequence[Climber], rung: int) -> list[Climber]:
    """Return the trials that have come to a rung, the best first, of equal ones the first."""
    there = [climber for climber in climbers if len(climber.values) > rung]
    return sorted(there, key=lambda one: (inf if isnan(one.values[rung]) else one.values[rung], one.number))
