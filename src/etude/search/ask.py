"""Ask a sampler for the next trial of a search.

The sampler sees a copy of the journal that is made for the question, in which every trial is what the sampler takes it
for: one that is paused is no longer running, though it is in the journal, where Optuna has no word for it. And the
sampler is made anew from a seed of the trial's own, so that the answer is a function of the journal alone.
"""

from collections.abc import Iterable, Mapping, Sequence
from hashlib import sha256
from math import isfinite
from typing import Any

import optuna
from optuna.samplers import BaseSampler, TPESampler
from optuna.storages import InMemoryStorage
from optuna.study import StudyDirection
from optuna.trial import FrozenTrial, TrialState, create_trial

from etude.search.search import Search


class _Seen(FrozenTrial):
    """A trial whose copy shares what it holds, as nobody changes it: whole copies of hundreds would take a while."""

    @classmethod
    def of(cls, trial: FrozenTrial) -> "_Seen":
        seen = cls.__new__(cls)
        seen.__dict__.update(trial.__dict__)
        return seen

    def __deepcopy__(self, memo: object) -> "_Seen":
        return self.of(self)


_FINISHED = (TrialState.COMPLETE, TrialState.FAIL)


def seed_of_trial(seed: int, number: int) -> int:
    """Return the seed with which the sampler of one trial is made."""
    return int.from_bytes(sha256(f"{seed}/{number}".encode()).digest()[:4], "big")


def ask(
    search: Search, trials: Sequence[FrozenTrial], attributes: Mapping[str, Any], running: Iterable[int]
) -> tuple[FrozenTrial, list[str], dict[str, Any]]:
    """Ask for the next trial.

    Args:
        search: the search.
        trials: those before it.
        attributes: what samplers have noted about the search.
        running: the numbers of the trials that are being trained.

    Returns:
        The trial; its overrides; and what samplers have noted by now.
    """
    number = len(trials)
    sampler = search.sampler(search.seed if search.one_sequence else seed_of_trial(search.seed, number))
    storage = InMemoryStorage()
    directions = [StudyDirection.MAXIMIZE if one.maximize else StudyDirection.MINIMIZE for one in search.objectives]
    study = optuna.create_study(storage=storage, sampler=sampler, directions=directions)
    for key, value in attributes.items():
        storage.set_study_system_attr(study._study_id, key, value)
    seen = _as_seen(search, sampler, trials, {*running})
    for trial in seen:
        storage.create_new_trial(study._study_id, _Seen.of(trial))
    asked = study.ask({key: dimension.distribution for key, dimension in search.space.items()})
    words = [search.override(key, asked.params[key]) for key in search.space]
    words += search.custom_space(asked) if search.custom_space else []
    frozen = storage.get_trial(asked._trial_id)
    made = create_trial(
        state=TrialState.RUNNING,
        params=frozen.params,
        distributions=frozen.distributions,
        system_attrs=frozen.system_attrs,
    )
    return made, words, storage.get_study_system_attrs(study._study_id)


def _as_seen(
    search: Search, sampler: BaseSampler, trials: Sequence[FrozenTrial], running: set[int]
) -> list[FrozenTrial]:
    """Return the trials as the sampler takes them.

    TPE ranks pruned trials by how far they came. Other samplers count finished ones alone, and would forget the rest:
    for them, a trial that was paused or pruned is finished with a value in place of the one that it has not.
    """
    prunes, imputes_running = isinstance(sampler, TPESampler), search.impute_while_running
    finished = [trial.values for trial in trials if trial.state is TrialState.COMPLETE]
    seen = []
    for trial in trials:
        going = trial.number in running
        if trial.state in _FINISHED or (going and (prunes or not imputes_running)):
            seen.append(trial)
        elif trial.state is TrialState.RUNNING and not (trial.intermediate_values or going):  # it failed
            seen.append(_changed(trial, TrialState.FAIL, None))
        elif prunes:
            seen.append(_changed(trial, TrialState.PRUNED, None))
        elif values := _impute(
            search, trial, finished, imputes_running if going and imputes_running else search.impute
        ):
            seen.append(_changed(trial, TrialState.COMPLETE, values))
        else:
            seen.append(_changed(trial, TrialState.FAIL, None))
    return seen


def _impute(search: Search, trial: FrozenTrial, finished: Sequence[Sequence[float]], how: str) -> list[float] | None:
    """Return what an unfinished trial counts as; None if there is nothing to go by.

    With several objectives it is the worst that was found of each, as the curve is of one.
    """
    curve = [value for _, value in sorted(trial.intermediate_values.items()) if isfinite(value)]
    if how == "latest" and len(search.objectives) == 1 and curve:
        return curve[-1:]
    worst = []
    for place, one in enumerate(search.objectives):
        known = [values[place] for values in finished if isfinite(values[place])]
        known += curve if len(search.objectives) == 1 else []
        if not known:
            return None
        worst.append(max(known) if one.maximize == (how == "best") else min(known))
    return worst


def _changed(trial: FrozenTrial, state: TrialState, values: Sequence[float] | None) -> FrozenTrial:
    return create_trial(
        state=state,
        values=values,
        params=trial.params,
        distributions=trial.distributions,
        user_attrs=trial.user_attrs,
        system_attrs=trial.system_attrs,
        intermediate_values=trial.intermediate_values,
    )
