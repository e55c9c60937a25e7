"""Read what a journal records of a search, without Optuna, which takes a second to import, and without its lock.

The lines are those of Optuna 5's `JournalStorage`. A last line that is only half written is left out.
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from math import isfinite
from pathlib import Path
from typing import Any

from etude.errors import UserError
from etude.search.promotion import reached
from etude.store.run_state import State

# What lines say, by Optuna's numbers
_CREATE_STUDY, _DELETE_STUDY, _STUDY_NOTE, _CREATE_TRIAL, _END, _VALUE, _NOTE, _CONSTRAINT = 0, 1, 2, 4, 6, 7, 8, 9
_ENDS = {1: State.FINISHED, 2: State.PRUNED, 3: State.FAILED}
_MAXIMIZE = 2


@dataclass
class RecordedTrial:
    """A trial in the journal.

    Attributes:
        number: its number.
        drawn: what was drawn for each key, as the journal has it.
        distributions: what it was drawn from, as JSON of Optuna's.
        end: finished, pruned or failed (its config was refused); None as long as none of these is told.
        values: the objectives at its end.
        curve: step -> the first objective there; of several seeds, the place of each -> its value.
        notes: what étude noted: overrides, runs, rungs, to, same_as, error.
        is_feasible: whether it keeps to the constraints.
    """

    number: int
    drawn: dict[str, Any]
    distributions: dict[str, str]
    end: State | None = None
    values: list[float] = field(default_factory=list)
    curve: dict[int, float] = field(default_factory=dict)
    notes: dict[str, Any] = field(default_factory=dict)
    is_feasible: bool = True

    @property
    def state(self) -> State:
        """Its state; running if it is trained, or to be trained."""
        if self.end is State.FINISHED:
            return State.FINISHED if all(map(isfinite, self.values)) else State.DIVERGED
        rungs, to = self.notes.get("rungs", []), self.notes.get("to", 0)
        is_paused = to < len(reached(rungs, self.curve))
        return self.end or (State.PAUSED if is_paused else State.RUNNING)

    @property
    def overrides(self) -> list[str]:
        """The overrides that tell it from the others."""
        return [*self.notes.get("overrides", [])]

    @property
    def is_repeated(self) -> bool:
        """Whether it is the same run as an earlier trial."""
        return "same_as" in self.notes


@dataclass
class RecordedSearch:
    """A search in the journal.

    Attributes:
        name: its name.
        maximize: for each objective, whether it is maximized.
        recipe: what it draws from, as its first start noted.
        best_of_curve: whether the value of a trial is the best of its validations.
        confirmed: "baseline" or the number of a trial -> the runs that confirm it, below the folder of runs.
        trials: its trials.
        events: in the order in which they were noted: the number of a trial, and a step of its curve, or None for its
            end.
    """

    name: str
    maximize: list[bool]
    recipe: dict[str, Any] = field(default_factory=dict)
    best_of_curve: bool = False
    confirmed: dict[str, list[str]] = field(default_factory=dict)
    trials: list[RecordedTrial] = field(default_factory=list)
    events: list[tuple[int, int | None]] = field(default_factory=list)

    @property
    def best(self) -> RecordedTrial | None:
        """The finished trial with the best first objective within the constraints, of equal ones the first."""
        sign = -1 if self.maximize[0] else 1
        finished = [trial for trial in self.trials if trial.state is State.FINISHED and trial.is_feasible]
        return min(finished, key=lambda trial: sign * trial.values[0], default=None)


def read_journal(file: Path) -> list[RecordedSearch]:
    """Read the searches in a journal.

    Raises:
        UserError: it cannot be read, or a line is damaged.
    """
    studies: dict[int, RecordedSearch] = {}
    trials: list[tuple[RecordedSearch, RecordedTrial]] = []
    made = 0
    for place, line in _lines(file):
        try:
            what = line["op_code"]
            if what == _CREATE_STUDY:
                if line["study_name"] not in {study.name for study in studies.values()}:  # or two processes began it
                    studies[made] = RecordedSearch(line["study_name"], [d == _MAXIMIZE for d in line["directions"]])
                    made += 1
            elif what == _DELETE_STUDY:
                studies.pop(line["study_id"], None)
            elif what == _STUDY_NOTE and line["study_id"] in studies:
                noted = studies[line["study_id"]]
                noted.recipe |= line["user_attr"].get("search", {})
                noted.best_of_curve |= line["user_attr"].get("best_of_curve", False)
                noted.confirmed |= line["user_attr"].get("confirmed", {})
            elif what == _CREATE_TRIAL and (study := studies.get(line["study_id"])):
                trial = RecordedTrial(len(study.trials), line.get("params", {}), line.get("distributions", {}))
                trial.end, trial.notes = _ENDS.get(line.get("state", 0)), line.get("user_attrs", {})
                study.trials.append(trial)
                trials.append((study, trial))
            elif what in (_END, _VALUE, _NOTE, _CONSTRAINT):
                _apply(what, line, *trials[line["trial_id"]])
        except (KeyError, IndexError, TypeError, AttributeError) as error:
            raise _damaged(file, place) from error
    return [*studies.values()]


def _apply(what: int, line: dict[str, Any], study: RecordedSearch, trial: RecordedTrial) -> None:
    if trial.end:  # another process told it first
        return
    if what == _NOTE:
        trial.notes |= line["user_attr"]
    elif what == _CONSTRAINT:
        excess = [value for key, value in line["system_attr"].items() if key.startswith("constraints:")]
        trial.is_feasible &= all(value <= 0 for value in excess)
    elif what == _VALUE:
        trial.curve[line["step"]] = line["intermediate_value"]
        study.events.append((trial.number, line["step"]))
    elif end := _ENDS.get(line["state"]):
        trial.end, trial.values = end, line["values"] or []
        study.events.append((trial.number, None))


def _lines(file: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield the number and the content of each whole line."""
    try:
        text = file.read_bytes()
    except OSError as error:
        raise UserError(f"{file} cannot be read: {error.strerror}") from error
    for place, line in enumerate(text.split(b"\n")[:-1], start=1):
        try:
            content = json.loads(line)
        except ValueError as error:
            raise _damaged(file, place) from error
        if not isinstance(content, dict):
            raise _damaged(file, place)
        yield place, content


def _damaged(file: Path, place: int) -> UserError:
    return UserError(f"{file}, line {place}, is damaged, or no journal of a search: restore the file from a copy")
