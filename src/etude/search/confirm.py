"""Confirm what a search has found: its best trials, and the study's baseline, on seeds that it has not seen."""

from collections.abc import Sequence
from math import isfinite
from pathlib import Path

from optuna import Study
from optuna.trial import FrozenTrial, TrialState

from etude.errors import UserError
from etude.search.search import Search
from etude.study.arms import override_key, split_override, without_seed
from etude.study.study import arm_in, with_baseline

SEEDS = 3


def best_trials(search: Search, trials: Sequence[FrozenTrial], count: int) -> list[FrozenTrial]:
    """Return the best finished trials by the first objective that keep to the constraints, the best first.

    Of the same draw there is one, whatever its seeds.

    Raises:
        UserError: none is finished.
    """
    sign = -1 if search.objectives[0].maximize else 1
    finished = [
        trial
        for trial in trials
        if trial.state is TrialState.COMPLETE and isfinite(trial.values[0]) and _is_feasible(trial)
    ]
    if not finished:
        raise UserError(
            f"{search.source}: no trial is finished yet, or none keeps to the constraints: there is none to confirm"
        )
    ranked = sorted(finished, key=lambda trial: (sign * trial.values[0], trial.number))
    first: dict[tuple[str, ...], FrozenTrial] = {}
    for trial in ranked:
        first.setdefault((*without_seed(trial.user_attrs["overrides"]),), trial)
    return [*first.values()][:count]


def _is_feasible(trial: FrozenTrial) -> bool:
    excess = [value for key, value in trial.system_attrs.items() if key.startswith("constraints:")]
    return all(value <= 0 for value in excess)


def confirming_runs(
    search: Search, best: Sequence[FrozenTrial], trials: Sequence[FrozenTrial], default_seed: int
) -> list[list[str]]:
    """Return the overrides of the runs that confirm trials: the baseline on three fresh seeds, and then each of them.

    The baseline is that of the study that the search or the best trial names, or else the config that the search began
    from.

    Args:
        search: the search.
        best: the trials.
        trials: all trials, whose seeds are not fresh.
        default_seed: the seed of a config that names none.
    """
    fixed = without_seed(search.fixed)
    drawn = (word for trial in trials for word in trial.user_attrs.get("overrides", []))
    said = [int(value) for key, value in map(split_override, [*search.fixed, *drawn]) if key == "seed"]
    first = max([*(said or [default_seed]), *search.seeds]) + 1
    tried = [without_seed(trial.user_attrs["overrides"]) for trial in best]
    arm = [word for word in tried[0] if override_key(word) == "experiment"]
    baseline = with_baseline([*fixed, *arm]) if arm_in(arm)[0] else with_baseline(fixed)
    whole = [baseline, *([*fixed, *words] for words in tried)]
    return [[*words, f"seed={seed}"] for words in whole for seed in range(first, first + SEEDS)]


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
