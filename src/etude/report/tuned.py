"""Separate the runs of a study that tunes its arms: all arms with one shared value, and each arm with its own best.

Runs on the study's pilot seeds are trials. They enter no table; they decide by validation loss which of its values is
best for an arm. The shared value is the one that most arms were run with on other seeds.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import inf
from typing import Any

from etude.report.grouping import is_same, newest_configs
from etude.report.wording import format_count
from etude.search.tuning import combinations
from etude.store.records import Run
from etude.study.criteria import OTHER_TEXTS, best_value, mean_loss
from etude.study.study import Study, value_at

Values = tuple[Any, ...]  # the values of the keys that a study tunes, in the order of the study


@dataclass(frozen=True)
class Readings:
    """The finished runs of a study in one setting, separated; if nothing was tuned, all are `shared`."""

    shared: list[Run] = field(default_factory=list)  # runs with the value that all arms share
    best: list[Run] = field(default_factory=list)  # runs with the best value of their arm
    values: dict[str, Values] = field(default_factory=dict)  # the best value, by arm
    trials: dict[str, int] = field(default_factory=dict)  # how many values were tried, by arm
    pilots: frozenset[int] = frozenset()  # the seeds of the trials, which are in no table
    notes: list[str] = field(default_factory=list)  # sentences on runs that are neither shared nor best
    losses: dict[str, list[float]] = field(default_factory=dict)  # of the draws that all arms share, in nats, by arm


def separate_trials(
    study: Study, runs: Sequence[Run], asked: Mapping[str, str], stopped: Sequence[Run] = ()
) -> Readings:
    """Separate the finished runs of one setting.

    If all runs are on pilot seeds, they are treated like other runs, so that a table of pilots can be shown.

    Args:
        study: the study of the runs.
        runs: its finished runs in one setting.
        asked: the shared value, key -> value, if the user named one.
        stopped: runs in that setting that were paused or pruned.
    """
    judged = [run for run in runs if run.seed not in study.pilots] or list(runs)
    pilots = frozenset(study.pilots) - {run.seed for run in judged}
    trials = [run for run in runs if run.seed in pilots]
    fitting = [run for run in judged if all(run.chosen(key) == value for key, value in asked.items())]
    shared = _shared_value(study, fitting)
    tried, others = _perplexities(study, trials) if study.tune else ({}, [])
    found = {arm: best_value(seeds, study.pilots) for arm, seeds in tried.items()}
    values = {arm: value for arm in study.arms if (value := found.get(arm)) is not None}
    of_all = [run for run in fitting if tuned_values(study, run) == shared]
    best = [run for run in judged if run.arm in values and tuned_values(study, run) == values[run.arm]]
    read = {id(run) for run in (*of_all, *best)}
    left = sum(id(run) not in read for run in judged)
    keys = ", ".join(study.tune)
    notes = [f"Left out: {format_count(left)} with another {keys}: say which to see them."] if left else []
    notes += [f"Not tuned: {', '.join(others)}: {OTHER_TEXTS.format(keys)}."] if others else []
    notes += [f"Left out: {format_count(len(trials))} on pilot seeds."] if trials else []
    given_up = [run for run in stopped if run.seed in pilots]
    counts, losses = {arm: len(seeds) for arm, seeds in tried.items()}, {}
    if study.draws and tried:
        draws = combinations(study)
        for arm, seeds in tried.items():
            listed = {_place(draws, values): mean_loss(of, study.pilots) for values, of in seeds.items()}
            places = {_place(draws, tuned_values(study, run)) for run in given_up if run.arm == arm}
            counts[arm] += len(places - {None, *listed})
            known = {*listed, *places} - {None}
            if known == {*range(len(known) if "hours" in study.draws else len(draws))}:
                losses[arm] = [listed.get(place, inf) for place in range(len(known))]
    return Readings(of_all, best, values, counts, pilots, notes, losses)


def _place(draws: Sequence[Values], values: Values) -> int | None:
    """Return which of the draws has these values."""
    return next((place for place, one in enumerate(draws) if all(map(_may_be, one, values))), None)


def _perplexities(study: Study, trials: Sequence[Run]) -> tuple[dict[str, dict[Values, dict[int, Any]]], list[str]]:
    """Return the validation perplexity of each trial: arm -> values -> seed -> perplexity, None if it diverged.

    Also returned are the arms whose trials on one seed met different texts; these have no perplexities to compare.

    Only values of the study count, in its order, because a sweep chooses among these. Of trials of several configs,
    such as before and after an edit of `conf/`, those count that a table would show.
    """
    tried: dict[str, dict[Values, dict[int, Any]]] = {}
    texts: dict[str, set[tuple[int, Any]]] = {}
    there = dict.fromkeys(tuned_values(study, run) for run in trials)
    listed = (values for one in combinations(study) for values in there if all(map(_may_be, one, values)))
    for values in dict.fromkeys(listed):
        for run in newest_configs(study, [run for run in trials if tuned_values(study, run) == values])[0]:
            perplexity = None if run.divergence else value_at(run.result, "valid.perplexity")
            tried.setdefault(run.arm, {}).setdefault(values, {})[run.seed] = perplexity
            texts.setdefault(run.arm, set()).add((run.seed, run.result.get("store")))
    others = [arm for arm, met in texts.items() if len(met) > len({seed for seed, _ in met})]
    return {arm: found for arm, found in tried.items() if arm not in others}, others


def _may_be(written: str | float, value: Any) -> bool:
    """Return whether a value of study.yaml is that of a config; an interpolation may stand for any value."""
    return is_same(written, value) or "${" in str(written)


def tuned_values(study: Study, run: Run) -> Values:
    """Return the values that a run has for the keys that its study tunes."""
    return tuple(value_at(run.config, key) for key in study.tune)


def _shared_value(study: Study, judged: Sequence[Run]) -> Values:
    """Return the value that most arms have; in a draw, the one that was run first; () if there are no runs."""
    first: dict[Values, float] = {}
    for run in judged:
        values = tuned_values(study, run)
        first[values] = min(run.changed, first.get(values, run.changed))
    arms = Counter(values for values, _ in {(tuned_values(study, run), run.arm) for run in judged})
    return max(first, key=lambda values: (arms[values], -first[values]), default=())
