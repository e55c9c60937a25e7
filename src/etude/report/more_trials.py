"""Say whether the order of arms that were tuned would change with twice the trials."""

from collections.abc import Mapping, Sequence
from itertools import pairwise
from math import isfinite

from etude.report.statistics import Scores, best_of_twice, other_order_in_half
from etude.report.statistics.more_trials import FEWEST
from etude.report.wording import format_fixed, format_range

_DIGITS = 3
_WORTH_TELLING = 0.05  # the least share of halves with another order that is told


def on_more_trials(losses: Mapping[str, Sequence[float]]) -> list[str]:
    """Say whether the order of the arms by their best trial would change with twice the trials.

    A trial that diverged, or was stopped because others were better, counts as the worst of its arm that came to its
    end.

    Args:
        losses: arm -> the validation loss of each trial in nats, of the same draws in the same order for all arms; not
            finite where a trial has none. Arms that had the same hours may have different numbers of trials.
    """
    known = {arm: [one for one in all_of_them if isfinite(one)] for arm, all_of_them in losses.items()}
    best = {arm: min(finite) for arm, finite in known.items() if finite}
    if len(best) < 2 or min(map(len, losses.values())) < FEWEST:
        return []
    twice = {
        arm: best_of_twice(
            Scores(arm, [loss if isfinite(loss) else max(known[arm]) for loss in losses[arm]]), lower_is_better=True
        )
        for arm in best
    }
    now, then = (sorted(some, key=lambda arm: some[arm]) for some in (best, twice))
    told = ", ".join(f"{arm} {_nats(best[arm])} → {_nats(twice[arm])}" for arm in now)
    order = "stay as it is" if now == then else f"become {', '.join(then)}"
    stopped = sum(len(losses[arm]) - len(known[arm]) for arm in best)
    but = f" The {stopped} that diverged or were stopped count as the worst that came to their end." if stopped else ""
    others = {(one, other): other_order_in_half(*_shared(losses[one], losses[other])) for one, other in pairwise(now)}
    otherwise = [
        f"{one} and {other} in {100 * share:.0f} %"
        for (one, other), share in others.items()
        if share is not None and share >= _WORTH_TELLING
    ]
    halves = "; ".join(otherwise) or f"none in more than {100 * _WORTH_TELLING:.0f} %"
    trials = format_range(map(len, losses.values()))
    return [
        f"With twice the {trials} trials the order of the arms by validation loss would {order}, if the expected best "
        "goes on falling as it fell from a quarter of them to half and to all, which is an extrapolation and no test: "
        f"{told}."
        f"{but} Among all halves of the trials, neighbours in this order stand otherwise: {halves}."
    ]


def _shared(first: Sequence[float], second: Sequence[float]) -> tuple[Sequence[float], Sequence[float]]:
    """Return the losses of the draws that both arms had."""
    both = min(len(first), len(second))
    return first[:both], second[:both]


def _nats(loss: float) -> str:
    return format_fixed(loss, _DIGITS)
