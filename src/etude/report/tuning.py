"""Two readings of a study that tunes its arms: one value shared by all, and each arm at its own best.

Runs on the study's pilot seeds are trials. They enter no table; they say which value suits an arm best, by validation
loss. The shared value is the one that most arms were judged with.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from etude.report.wording import format_count
from etude.runs.records import Run
from etude.studies.criteria import best_value
from etude.studies.study import Study, value_at

Values = tuple[Any, ...]  # of the keys that a study tunes, in its order


@dataclass(frozen=True)
class Readings:
    """The finished runs of a study in one setting, apart.

    Attributes:
        shared: those judged with the value that all arms share; all runs, where nothing was tuned.
        best: those judged with the value that suits their arm best; empty where nothing was tuned.
        values: which value that is, by arm.
        trials: how many values were tried, by arm.
        pilots: the seeds that are in no table.
        notes: sentences on what is in neither reading.
    """

    shared: list[Run] = field(default_factory=list)
    best: list[Run] = field(default_factory=list)
    values: dict[str, Values] = field(default_factory=dict)
    trials: dict[str, int] = field(default_factory=dict)
    pilots: frozenset[int] = frozenset()
    notes: list[str] = field(default_factory=list)


def readings(study: Study, runs: Sequence[Run], asked: Mapping[str, str]) -> Readings:
    """The finished runs of one setting as they are to be read.

    Args:
        study: which may say what is tuned.
        runs: where all are on pilot seeds, they are the table: who looks at pilots wants to see them.
        asked: the shared value of a tuned key, where the reader chose it.
    """
    judged = [run for run in runs if run.seed not in study.pilots] or list(runs)
    pilots = frozenset(study.pilots) - {run.seed for run in judged}
    trials = [run for run in runs if run.seed in pilots]
    fitting = [run for run in judged if all(run.chosen(key) == value for key, value in asked.items())]
    shared = _shared(study, fitting)
    tried = {arm: _losses(study, [run for run in trials if run.arm == arm]) for arm in study.arms}
    found = {arm: best_value(losses, study.pilots) for arm, losses in tried.items()}
    values = {arm: value for arm, value in found.items() if value is not None}
    of_all = [run for run in fitting if _values(study, run) == shared]
    best = [run for run in judged if run.arm in values and _values(study, run) == values[run.arm]]
    others = sum(run not in of_all and run not in best for run in judged)
    keys = ", ".join(study.tune)
    notes = [f"Left out: {format_count(others)} with another {keys}: say which to see them."] if others else []
    notes += [f"Left out: {format_count(len(trials))} on pilot seeds."] if trials else []
    return Readings(of_all, best, values, {arm: len(losses) for arm, losses in tried.items() if losses}, pilots, notes)


def _losses(study: Study, trials: Sequence[Run]) -> dict[Values, dict[int, Any]]:
    """By value and seed, the validation perplexity; None of what diverged."""
    found: dict[Values, dict[int, Any]] = {}
    for run in trials:
        perplexity = None if run.divergence else value_at(run.result, "valid.perplexity")
        found.setdefault(_values(study, run), {})[run.seed] = perplexity
    return found


def _shared(study: Study, judged: Sequence[Run]) -> Values:
    """The value that most arms have; of equals the one that was run first. Nothing where there are no runs."""
    first: dict[Values, float] = {}
    for run in judged:
        values = _values(study, run)
        first[values] = min(run.changed, first.get(values, run.changed))
    arms = Counter(values for values, _ in {(_values(study, run), run.arm) for run in judged})
    return max(first, key=lambda values: (arms[values], -first[values]), default=())


def _values(study: Study, run: Run) -> Values:
    return tuple(value_at(run.config, key) for key in study.tune)
