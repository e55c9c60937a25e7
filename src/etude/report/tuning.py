"""Two readings of a study that tunes its arms: one value shared by all, and each arm at its own best.

Runs on the study's pilot seeds are trials. They enter no table; they say which value suits an arm best, by validation
loss. The shared value is the one that most arms were judged with.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import isfinite, log
from statistics import fmean
from typing import Any

from etude.config.studies import Study, value_at
from etude.report.results import Run

Values = tuple[Any, ...]  # of the keys that a study tunes, in its order


@dataclass(frozen=True)
class Readings:
    """The runs of a study, apart.

    Attributes:
        shared: those judged with the value that all arms share; all runs, where nothing was tuned.
        best: those judged with the value that suits their arm best; empty where nothing was tuned.
        values: which value that is, by arm.
        trials: how many values were tried, by arm.
        shared_values: the value that all arms share.
    """

    shared: list[Run]
    best: list[Run] = field(default_factory=list)
    values: dict[str, Values] = field(default_factory=dict)
    trials: dict[str, int] = field(default_factory=dict)
    shared_values: Values = ()


def readings(study: Study, runs: Sequence[Run]) -> Readings:
    """The runs of a study as they are to be read."""
    pilots = [run for run in runs if run.seed in study.pilots]
    judged = [run for run in runs if run.seed not in study.pilots]
    if not study.tune or not any(run.finished for run in judged):
        return Readings(judged if any(run.finished for run in judged) else list(runs))
    tried = {arm: _losses(study, [run for run in pilots if run.arm == arm]) for arm in study.arms}
    tried = {arm: losses for arm, losses in tried.items() if losses}
    values = {arm: min(losses, key=lambda one: losses[one]) for arm, losses in tried.items()}
    shared = _shared(study, judged)
    return Readings(
        [run for run in judged if _values(study, run) == shared],
        [run for run in judged if _values(study, run) == values.get(run.arm)],
        values,
        {arm: len(losses) for arm, losses in tried.items()},
        shared,
    )


def _losses(study: Study, trials: Sequence[Run]) -> Mapping[Values, float]:
    """By value, the mean validation loss over the pilots in nats a token; what diverged was tried and is no best."""
    found: dict[Values, list[float]] = {}
    for run in trials:
        perplexity = value_at(run.result, "valid.perplexity") if run.finished else None
        if isinstance(perplexity, int | float):
            finite = isfinite(perplexity) and perplexity > 0
            found.setdefault(_values(study, run), []).append(log(perplexity) if finite else float("inf"))
    return {values: fmean(losses) for values, losses in found.items()}


def _shared(study: Study, judged: Sequence[Run]) -> Values:
    """The value with which most arms have a finished run; of equals the one that was run first."""
    first: dict[Values, float] = {}
    for run in judged:
        if run.finished:
            values = _values(study, run)
            first[values] = min(run.changed, first.get(values, run.changed))
    arms = Counter(values for values, _ in {(_values(study, run), run.arm) for run in judged if run.finished})
    return max(first, key=lambda values: (arms[values], -first[values]))


def _values(study: Study, run: Run) -> Values:
    return tuple(value_at(run.config, key) for key in study.tune)
