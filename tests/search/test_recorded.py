"""What the journal records is read as Optuna reads it."""

import json
import subprocess
import sys
from math import inf
from pathlib import Path
from typing import Any

import optuna
import pytest
from optuna.trial import TrialState
from tests.search.world import Above, World, carry_out, loss, search

from etude.errors import UserError
from etude.search.engine import Engine
from etude.search.recorded import RecordedSearch, read_journal
from etude.search.search import Objective, Promotion
from etude.store.run_state import State

STATES = {State.FINISHED: TrialState.COMPLETE, State.DIVERGED: TrialState.COMPLETE, State.FAILED: TrialState.FAIL}
STATES |= {State.PRUNED: TrialState.PRUNED, State.PAUSED: TrialState.RUNNING, State.RUNNING: TrialState.RUNNING}


def diverging(words: dict[str, str]) -> float:
    return inf if float(words["x"]) < 0.5 else loss(words)


SEARCHES = {
    "promoted": search(promotion=Promotion(), n_trials=15),
    "stopped": search(stopping=Above(11.0), n_trials=15),
    "several seeds": search(seeds=(1, 2), n_trials=6),
    "two numbers": search(objectives=(Objective("valid.loss"), Objective("steps", True)), n_trials=6),
    "constrained": search(constraints={"valid.loss": 4.0}, n_trials=12),
}


def read(engine: Engine) -> RecordedSearch:
    (found,) = read_journal(engine.journal.path)
    return found


@pytest.mark.parametrize("name", SEARCHES)
@pytest.mark.parametrize("blows", [7, 10**9], ids=["begun", "ended"])
def test_the_trials_are_those_that_optuna_reads(name: str, blows: int, tmp_path: Path) -> None:
    engine = carry_out(SEARCHES[name], World(tmp_path, loss if name == "promoted" else diverging), blows=blows)
    found, study = read(engine), engine.journal.study
    assert found.name == study.study_name
    assert found.maximize == [direction == optuna.study.StudyDirection.MAXIMIZE for direction in study.directions]
    assert found.recipe == study.user_attrs["search"]
    for mine, trial in zip(found.trials, study.trials, strict=True):
        assert (mine.number, mine.curve, mine.notes) == (trial.number, trial.intermediate_values, trial.user_attrs)
        assert mine.values == (trial.values or [])
        assert STATES[mine.state] == trial.state
        excess = [v for key, v in trial.system_attrs.items() if key.startswith("constraints")]
        assert mine.is_feasible == all(value <= 0 for value in excess)
    assert any(not trial.is_feasible for trial in found.trials) == (name == "constrained")
    if name == "stopped":
        assert {trial.state for trial in found.trials} >= {State.FINISHED, State.PRUNED}


def test_what_is_paused_is_what_the_engine_takes_for_paused(tmp_path: Path) -> None:
    world, seen = World(tmp_path), set()
    for blow in range(19):
        engine = carry_out(SEARCHES["promoted"], world, blows=1)
        paused = [engine._is_paused(trial) for trial in engine.journal.trials()]
        assert [trial.state is State.PAUSED for trial in read(engine).trials] == paused, f"after {blow + 1} runs"
        seen |= {*paused}
    assert seen == {True, False}


def test_the_events_are_those_of_each_trial_in_their_order(tmp_path: Path) -> None:
    found = read(carry_out(SEARCHES["promoted"], World(tmp_path)))
    for trial in found.trials:
        steps = [step for number, step in found.events if number == trial.number]
        assert steps == [*trial.curve, *[None] * (trial.end is not None)]


def test_the_best_is_that_of_optuna(tmp_path: Path) -> None:
    engine = carry_out(search(), World(tmp_path))
    best = read(engine).best
    assert best
    assert best.number == engine.journal.study.best_trial.number


def test_half_a_last_line_is_left_out(tmp_path: Path) -> None:
    path = carry_out(search(n_trials=3), World(tmp_path)).journal.path
    whole = read_journal(path)
    path.write_bytes(path.read_bytes() + b'{"op_code": 4, "study')
    assert read_journal(path) == whole


@pytest.mark.parametrize(
    "line", ["{", "[]", "{}", '{"op_code": 7, "trial_id": 99, "step": 1, "intermediate_value": 1}']
)
def test_a_damaged_line_is_named(line: str, tmp_path: Path) -> None:
    path = carry_out(search(n_trials=2), World(tmp_path)).journal.path
    lines = path.read_text().splitlines()
    path.write_text("\n".join([*lines[:5], line, *lines[5:], ""]))
    with pytest.raises(UserError, match=r"first\.journal, line 6, is damaged"):
        read_journal(path)


def test_a_journal_that_is_not_there_is_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"none\.journal cannot be read: No such file"):
        read_journal(tmp_path / "none.journal")


def test_it_needs_no_optuna() -> None:
    program = "import sys, etude.search.recorded; print('optuna' in sys.modules)"
    told = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert told.stdout.strip() == "False"


def test_a_second_process_that_begins_the_same_search_begins_no_other(tmp_path: Path) -> None:
    path = carry_out(search(n_trials=2), World(tmp_path)).journal.path
    lines: list[Any] = [json.loads(line) for line in path.read_text().splitlines()]
    again = json.dumps(lines[0] | {"worker_id": "other"})
    path.write_text("\n".join([*map(json.dumps, lines[:1]), again, *map(json.dumps, lines[1:]), ""]))
    assert [len(found.trials) for found in read_journal(path)] == [2]
