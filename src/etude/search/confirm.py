"""Confirm what a search has found: its best trials, and what it began from, on seeds that it has not seen."""

from collections.abc import Sequence
from math import isfinite
from pathlib import Path

from optuna import Study
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


def confirming_runs(search: Search, best: Sequence[FrozenTrial], default_seed: int) -> list[list[str]]:
    """Return the overrides of the runs that confirm trials: the baseline on three fresh seeds, and then each of them.

    Args:
        search: the search.
        best: the trials.
        default_seed: the seed of a config that names none.
    """
    fixed = [word for word in search.fixed if override_key(word) != "seed"]
    used = [int(word.partition("=")[2]) for word in search.fixed if override_key(word) == "seed"] or [default_seed]
    first = max([*used, *search.seeds]) + 1
    tried = [trial.user_attrs["overrides"] for trial in best]
    return [[*fixed, *words, f"seed={seed}"] for words in ([], *tried) for seed in range(first, first + SEEDS)]


def note_confirmation(study: Study, best: Sequence[FrozenTrial], places: Sequence[Path]) -> None:
    """Write to the journal of a search which runs confirm it, for reports to read.

    Args:
        study: of the search.
        best: the trials that are confirmed.
        places: of the runs below the folder of runs, in the order of `confirming_runs`.
    """
    names = ["baseline", *(str(trial.number) for trial in best)]
    runs = [str(place) for place in places]
    study.set_user_attr("confirmed", {name: runs[n * SEEDS : (n + 1) * SEEDS] for n, name in enumerate(names)})
