"""Which trial goes on: asynchronous successive halving (Li et al. 2020), as a function of what the rungs have shown.

Trials are trained to the first rung and pause there. At each rung, one in eta goes on: a trial is promoted once it is
among the best ⌊n/eta⌋ of the n that have come so far, without waiting for others to come.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import inf, isnan, pi, sqrt


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


def reached(rungs: Sequence[int], curve: Iterable[int]) -> list[int]:
    """Return for each rung that a curve has come to the step of its first validation there.

    It comes later than the rung where a training was begun with validations at other steps.
    """
    steps = sorted(curve)
    first = (next((step for step in steps if step >= rung), None) for rung in rungs)
    return [step for step in first if step is not None]


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


def expected_share(rungs: Sequence[float], eta: int, n_trials: int) -> float:
    """Return about which share of the steps of all trials promotion trains.

    Of the n that come to a rung, ⌊n/eta⌋ are promoted that are the best in the end, and some that were among the best
    for a while: about as many as a binomial number of n and 1/eta strays from its mean, √(2 n (1/eta) (1 - 1/eta) / π).
    At least one trial comes to the end. For fewer than some twenty trials this is too high.

    Args:
        rungs: ascending shares of the budget; the last is 1.
        eta: at each rung, one in so many goes on.
        n_trials: how many there are.
    """
    coming, share, before = float(n_trials), 0.0, 0.0
    for rung in rungs:
        share += (rung - before) * coming / n_trials
        strays = sqrt(2 * coming / eta * (1 - 1 / eta) / pi)
        coming, before = min(coming, max(1.0, coming // eta + strays)), rung
    return share


def _rungs(climbers: Sequence[Climber]) -> int:
    return max((len(climber.values) for climber in climbers), default=0)


def _rank(climbers: Sequence[Climber], rung: int) -> list[Climber]:
    """Return the trials that have come to a rung, the best first, of equal ones the first."""
    there = [climber for climber in climbers if len(climber.values) > rung]
    return sorted(there, key=lambda one: (inf if isnan(one.values[rung]) else one.values[rung], one.number))
