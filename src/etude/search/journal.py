"""The journal of a search: a file of Optuna's, which `optuna-dashboard` opens and several processes share.

A process that is killed while it writes leaves half a line, which would swallow the next one: whoever takes the lock
cuts it off first. The lock is a `flock`, which the system releases with its process; Optuna's own would be left.
"""

import fcntl
import logging
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, BinaryIO

import optuna
from optuna.storages import JournalStorage
from optuna.storages.journal import JournalFileBackend, JournalFileOpenLock
from optuna.study import StudyDirection
from optuna.trial import FrozenTrial, TrialState

from etude.errors import UserError

logging.getLogger("optuna").setLevel(logging.WARNING)


class _Lock(JournalFileOpenLock):
    """A blocking lock beside the journal, which its holder may take again."""

    def __init__(self, journal: Path) -> None:
        super().__init__(str(journal), grace_period=None)
        self.journal, self.file = journal, journal.with_name(f".{journal.name}.lock")
        self._opened: BinaryIO | None = None
        self._depth = 0

    def acquire(self) -> bool:
        self._depth += 1
        if self._depth == 1:
            self._opened = self.file.open("ab")
            fcntl.flock(self._opened, fcntl.LOCK_EX)
            _cut_off_half_line(self.journal)
        return True

    def release(self) -> None:
        self._depth -= 1
        if self._depth == 0 and self._opened:
            self._opened.close()


class _File(JournalFileBackend):
    """The file itself; what goes wrong with it is one sentence."""

    def __init__(self, path: Path, lock: _Lock) -> None:
        super().__init__(str(path), lock_obj=lock)
        self.path = path

    def append_logs(self, logs: list[dict[str, Any]]) -> None:
        try:
            super().append_logs(logs)
        except OSError as error:
            raise UserError(
                f"cannot write {self.path}: {error.strerror}; free some space and type the same command again, "
                "which goes on with the search"
            ) from error

    def read_logs(self, log_number_from: int) -> Iterator[dict[str, Any]]:  # type: ignore[override]
        line = log_number_from
        try:
            for log in super().read_logs(log_number_from):
                line += 1
                yield log
        except ValueError as error:
            raise _damaged(self.path, line + 1) from error


class Journal:
    """The study of a search in its journal.

    Args:
        path: the file; it is created with its folder if it does not exist.
        name: of the study.
        maximize: for each objective, whether it is maximized.
        recipe: what the search draws from, which must stay the same.

    Raises:
        UserError: the journal is damaged, of another version of Optuna, or of a search with another space; or it cannot
            be written.
    """

    def __init__(self, path: Path, name: str, maximize: Sequence[bool], recipe: dict[str, Any]) -> None:
        self.path = path.absolute()  # with a relative path, Optuna would wait for its lock for ever
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self._lock = _Lock(self.path)
        with self.locked():
            try:
                self.storage = JournalStorage(_File(self.path, self._lock))
            except (AssertionError, KeyError, TypeError) as error:  # an operation that this Optuna does not know
                raise _damaged(self.path) from error
            directions = [StudyDirection.MAXIMIZE if one else StudyDirection.MINIMIZE for one in maximize]
            if name not in {study.study_name for study in self.storage.get_all_studies()}:
                self.id = self.storage.create_new_study(directions, name)
                self.storage.set_study_user_attr(self.id, "search", recipe)
            self.id = self.storage.get_study_id_from_name(name)
            if [*self.storage.get_study_directions(self.id)] != directions:
                raise UserError(f"{self.path}: its search has other objectives: {_way_out(self.path, name)}")
            self._check(recipe, name)

    def _check(self, recipe: dict[str, Any], name: str) -> None:
        began = self.storage.get_study_user_attrs(self.id).get("search", recipe)
        other = [key for key in {**began, **recipe} if began.get(key) != recipe.get(key)]
        if other:
            was, now = (str(one.get(other[0], "nothing")) for one in (began, recipe))
            raise UserError(
                f"{self.path}: its search began with {other[0]}={was}, not {now}: {_way_out(self.path, name)}"
            )

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Keep other processes from writing, so that what is read here holds until it is acted on."""
        self._lock.acquire()
        try:
            yield
        finally:
            self._lock.release()

    @property
    def study(self) -> optuna.Study:
        """The study, for what Optuna does with one: plots, importance."""
        return optuna.load_study(study_name=self.storage.get_study_name_from_id(self.id), storage=self.storage)

    def trials(self) -> list[FrozenTrial]:
        """Return all trials."""
        return self.storage.get_all_trials(self.id, deepcopy=False)

    @property
    def attributes(self) -> dict[str, Any]:
        """What samplers have noted about the search."""
        return self.storage.get_study_system_attrs(self.id)

    def add(self, trial: FrozenTrial, attributes: dict[str, Any]) -> None:
        """Write a trial, and what the sampler noted about the search."""
        for key, value in attributes.items():
            if self.attributes.get(key) != value:
                self.storage.set_study_system_attr(self.id, key, value)
        self.storage.create_new_trial(self.id, trial)

    def note(self, trial: FrozenTrial, key: str, value: Any) -> None:
        """Write something about a trial that is not finished."""
        if trial.user_attrs.get(key) != value:
            self.storage.set_trial_user_attr(trial._trial_id, key, value)

    def report(self, trial: FrozenTrial, curve: dict[int, float]) -> None:
        """Write the values of a trial at further steps."""
        for step, value in curve.items():
            if step not in trial.intermediate_values:
                self.storage.set_trial_intermediate_value(trial._trial_id, step, value)

    def tell(self, trial: FrozenTrial, state: TrialState, values: Sequence[float] | None = None) -> None:
        """Write how a trial ended."""
        self.storage.set_trial_state_values(trial._trial_id, state, values)


def _cut_off_half_line(path: Path) -> None:
    """Cut off what stands behind the last line break of a file."""
    with suppress(FileNotFoundError), path.open("r+b") as file:
        file.seek(max(0, file.seek(0, os.SEEK_END) - 1))
        if file.read() not in (b"", b"\n"):
            file.seek(0)
            file.truncate(file.read().rfind(b"\n") + 1)


def _damaged(path: Path, line: int | None = None) -> UserError:
    where = f"{path}, line {line}," if line else f"{path}"
    return UserError(
        f"{where} is damaged or was written by another version of Optuna than {optuna.__version__}: move the file "
        "away, and the same command begins the search again; runs that are finished are not computed again"
    )


def _way_out(path: Path, name: str) -> str:
    return f"give this search another name than {name}, or move the file away; finished runs are not computed again"
