"""A storage of the user's own takes the trials of a search when that ends."""

from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import optuna
import pytest
from optuna.distributions import IntDistribution
from optuna.trial import TrialState, create_trial
from tests.search.world import World, carry_out, search

from etude.errors import UserError
from etude.search.search import Dimension, Promotion
from etude.search.storage import add_trials, open_study

PROMOTED = {"n_trials": 6, "promotion": Promotion((0.5, 1.0), 2)}


@pytest.fixture
def url(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path}/trials.db"


@pytest.fixture(params=["url", "node"])
def storage(request: pytest.FixtureRequest, url: str, tmp_path: Path) -> Any:
    file = {"_target_": "optuna.storages.journal.JournalFileBackend", "file_path": str(tmp_path / "trials.journal")}
    return url if request.param == "url" else {"_target_": "optuna.storages.JournalStorage", "log_storage": file}


def told(study: optuna.Study) -> list[tuple[Any, ...]]:
    ended = [trial for trial in study.trials if trial.state.is_finished()]
    return [
        (one.state, one.params, one.values, one.intermediate_values, one.user_attrs | {"number": one.number})
        for one in ended
    ]


def test_trials_are_added_once_however_often_a_search_is_typed(storage: Any, tmp_path: Path) -> None:
    world = World(tmp_path)
    for n_trials in (6, 6, 9):
        engine = carry_out(search(**PROMOTED | {"n_trials": n_trials}), world)
        kept = open_study(storage, "first", [False])
        add_trials(kept, engine.journal.study, tmp_path / "lock")
        assert told(open_study(storage, "first", [False])) == told(engine.journal.study)
    assert {trial.state for trial in kept.trials} == {TrialState.COMPLETE, TrialState.PRUNED}
    assert kept.best_value == engine.journal.study.best_value


def test_a_trial_that_repeats_another_is_added_too(url: str, tmp_path: Path) -> None:
    few = {"k": Dimension(IntDistribution(1, 2), "1 to 2")}
    world = World(tmp_path)
    for n_trials in (3, 6):
        engine = carry_out(search(n_trials=n_trials, space=few), world)
        add_trials(open_study(url, "first", [False]), engine.journal.study, tmp_path / "lock")
        assert len(open_study(url, "first", [False]).trials) == n_trials


def test_two_processes_that_end_together_add_each_trial_once(storage: Any, tmp_path: Path) -> None:
    searched = carry_out(search(n_trials=6), World(tmp_path)).journal.study
    studies = [open_study(storage, "first", [False]) for _ in range(4)]
    with ThreadPoolExecutor(4) as together:
        [*together.map(partial(add_trials, searched=searched, lock=tmp_path / "lock"), studies)]
    assert len(open_study(storage, "first", [False]).trials) == 6


def test_trials_that_others_put_there_stay(url: str, tmp_path: Path) -> None:
    mine = open_study(url, "first", [False])
    mine.add_trial(create_trial(value=5.0))
    engine = carry_out(search(**PROMOTED), World(tmp_path))
    add_trials(mine, engine.journal.study, tmp_path / "lock")
    states = [trial.state for trial in open_study(url, "first", [False]).trials]
    assert states == [TrialState.COMPLETE, *(state for state, *_ in told(engine.journal.study))]


def test_a_study_with_other_directions_is_refused(url: str) -> None:
    open_study(url, "first", [True])
    with pytest.raises(UserError, match=r"storage: its study first has other directions: choose another .*study_name"):
        open_study(url, "first", [False])


def test_a_node_that_is_no_storage_is_one_sentence() -> None:
    with pytest.raises(UserError, match=r"hydra\.sweeper\.storage: .* is no storage: write a URL"):
        open_study({"_target_": "optuna.pruners.MedianPruner"}, "first", [False])
