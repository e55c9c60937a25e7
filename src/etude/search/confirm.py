"""Confirm what a search has found: its best trials, and what it began from, on seeds that it has not seen."""

from collections.abc import Sequence
from math import isfinite

from optuna.trial import FrozenTrial, TrialState

from etude.errors import UserError
from etude.search.search import Search
from etude.study.arms import override_key

SEEDS = 3


def best_trials(search: Search, trials: Sequence[FrozenTrial], count: int) -> list[FrozenTrial]:
    """Return the best finished trials by the first objective, the best first; of the same run, one.

    Raises:
        UserError: none is finished.
    """
    sign = -1 if search.objectives[0].maximize else 1
    finished = [
        trial
        for trial in trials
        if trial.state is TrialState.COMPLETE and isfinite(trial.values[0]) and "same_as" not in trial.user_attrs
    ]
    if not finished:
        raise UserError(f"{search.source}: no trial is finished yet, so that there is none to confirm")
    return sorted(finished, key=lambda trial: (sign * trial.values[0], trial.number))[:count]


def confirming_runs(search: Search, trials: Sequence[FrozenTrial], count: int, default_seed: int) -> list[list[str]]:
    """Return the overrides of the runs that confirm the best trials: each on three fresh seeds, as the baseline.

    Args:
        search: the search.
        trials: its trials.
        count: how many of the best are confirmed.
        default_seed: the seed of a config that names none.

    Raises:
        UserError: no trial is finished.
    """
    fixed = [word for word in search.fixed if override_key(word) != "seed"]
    used = [int(word.partition("=")[2]) for word in search.fixed if override_key(word) == "seed"] or [default_seed]
    first = max([*used, *search.seeds]) + 1
    best = [trial.user_attrs["overrides"] for trial in best_trials(search, trials, count)]
    return [[*fixed, *words, f"seed={seed}"] for words in ([], *best) for seed in range(first, first + SEEDS)]
