"""`hydra.sweeper.storage`: the trials of a search are added to a study of Optuna's there, when the search ends.

The search itself goes by its journal, which processes may share and a kill leaves whole. This file imports Optuna, so
it is imported late.
"""

import logging
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import optuna
from filelock import FileLock
from hydra.errors import InstantiationException
from hydra.utils import instantiate
from optuna.storages import BaseStorage, get_storage
from optuna.study import StudyDirection

from etude.errors import UserError

logging.getLogger("optuna").setLevel(logging.WARNING)

_WHERE = "hydra.sweeper.storage"


def open_study(node: Any, name: str, maximize: Sequence[bool]) -> optuna.Study:
    """Open a study in a storage of Optuna's; it is created if there is none of that name.

    Args:
        node: a URL such as `sqlite:///trials.db`, or {"_target_": "optuna.storages.RDBStorage", ...}.
        name: of the study.
        maximize: for each objective, whether it is maximized.

    Raises:
        UserError: there is no such storage, or its study has other directions.
    """
    with _explained():
        storage = node if isinstance(node, str) else instantiate(node)
        if not isinstance(storage, str | BaseStorage):
            raise TypeError(f"{node!r} is no storage: write a URL such as sqlite:///trials.db")
        directions = [StudyDirection.MAXIMIZE if one else StudyDirection.MINIMIZE for one in maximize]
        study = optuna.create_study(
            storage=get_storage(storage), study_name=name, directions=directions, load_if_exists=True
        )
    if study.directions != directions:
        raise UserError(f"{_WHERE}: its study {name} has other directions: choose another hydra.sweeper.study_name")
    return study


def add_trials(study: optuna.Study, searched: optuna.Study, lock: Path) -> None:
    """Add the trials of a search that have ended to a study, those that it does not hold; each is noted by its number.

    Args:
        study: where they are added.
        searched: of the search.
        lock: a file that is locked meanwhile, as processes that share the search may end together.

    Raises:
        UserError: it cannot take them; the journal of the search has them all.
    """
    with _explained(), FileLock(lock):
        held = [trial.user_attrs for trial in study.trials]
        for trial in searched.trials:
            trial.user_attrs = trial.user_attrs | {"number": trial.number}
            if trial.state.is_finished() and trial.user_attrs not in held:
                study.add_trial(trial)


@contextmanager
def _explained() -> Iterator[None]:
    try:
        yield
    except Exception as error:  # each kind of storage has its own
        cause = error.__cause__ if isinstance(error, InstantiationException) and error.__cause__ else error
        raise UserError(f"{_WHERE}: {str(cause).splitlines()[0]}") from error
