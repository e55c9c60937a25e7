"""What a sampler sees of a search, and that its answer follows from that alone."""

import json
from pathlib import Path
from typing import Any

import optuna
import pytest
from optuna.samplers import BaseSampler, CmaEsSampler, GPSampler, RandomSampler, TPESampler
from optuna.trial import FrozenTrial, TrialState, create_trial
from tests.search.world import SPACE, World, carry_out, search

from etude.search.ask import ask
from etude.search.engine import Engine
from etude.search.search import Promotion

COMPLETE, PRUNED, RUNNING, FAIL = TrialState.COMPLETE, TrialState.PRUNED, TrialState.RUNNING, TrialState.FAIL


def trial(state: TrialState, value: float | None = None, **curve: float) -> FrozenTrial:
    return create_trial(
        state=state,
        values=None if value is None else [value],
        params={"x": 1.0, "k": 2},
        distributions={key: one.distribution for key, one in SPACE.items()},
        intermediate_values={int(step[1:]): number for step, number in curve.items()},
    )


# finished, pruned, paused at a rung, being trained, failed while it was trained, refused
TRIALS = [
    *(trial(COMPLETE, 3.0, _10=6.0, _90=3.0), trial(COMPLETE, 1.0, _90=1.0), trial(PRUNED, 8.0, _10=8.0)),
    *(trial(RUNNING, _10=5.0, _20=4.0), trial(RUNNING, _10=7.0), trial(RUNNING), trial(FAIL)),
]
for number, one in enumerate(TRIALS):
    one.number = number
TRAINED = 4
CREATION = 4  # of a trial, by Optuna's number


def seen(kind: type[BaseSampler], **how: Any) -> list[tuple[TrialState, float | None]]:
    """What a sampler of this kind sees of TRIALS."""
    found: list[FrozenTrial] = []

    class Spy(kind):  # type: ignore[misc, valid-type]
        def infer_relative_search_space(self, study: optuna.Study, trial: FrozenTrial) -> dict[str, Any]:
            found.extend(study.get_trials(deepcopy=False)[:-1])
            return {}

        def sample_independent(self, study: Any, trial: Any, name: str, distribution: Any) -> Any:
            return distribution.low

    ask(search(sampler=lambda seed: Spy(seed=seed), **how), TRIALS, {}, [TRAINED])
    return [(one.state, one.value if one.state is COMPLETE else None) for one in found]


def test_tpe_sees_paused_trials_as_pruned_and_those_that_are_trained_as_running() -> None:
    ends = [(COMPLETE, 3.0), (COMPLETE, 1.0)]
    assert seen(TPESampler) == [*ends, (PRUNED, None), (PRUNED, None), (RUNNING, None), (FAIL, None), (FAIL, None)]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    ("kind", "how", "pruned", "paused", "trained"),
    [
        (GPSampler, {}, 8.0, 4.0, None),
        (GPSampler, {"impute": "worst"}, 8.0, 5.0, None),
        (GPSampler, {"impute": "best"}, 1.0, 1.0, None),
        (GPSampler, {"impute_while_running": "latest"}, 8.0, 4.0, 7.0),
        (GPSampler, {"impute_while_running": "worst"}, 8.0, 4.0, 7.0),
        (GPSampler, {"impute_while_running": "best"}, 8.0, 4.0, 1.0),
        (CmaEsSampler, {"impute": "worst"}, 8.0, 5.0, None),
        (RandomSampler, {"impute": "worst"}, 8.0, 5.0, None),
    ],
    ids=str,
)
def test_others_see_trials_that_were_stopped_as_finished_with_a_value_in_place_of_the_one_they_lack(
    kind: type[BaseSampler], how: dict[str, str], pruned: float, paused: float, trained: float | None
) -> None:
    found = seen(kind, **how)
    assert found[:4] == [(COMPLETE, 3.0), (COMPLETE, 1.0), (COMPLETE, pruned), (COMPLETE, paused)]
    assert found[4] == ((RUNNING, None) if trained is None else (COMPLETE, trained))
    assert [state for state, _ in found[5:]] == [FAIL, FAIL]


@pytest.mark.parametrize("how", [{}, {"promotion": Promotion()}], ids=["all", "promote"])
def test_the_journal_says_what_each_question_had_seen(how: dict[str, Any], tmp_path: Path) -> None:
    """Asked once more before what the journal held when a trial was drawn, the sampler draws the same."""
    what = search(n_trials=8, **how)
    done = carry_out(what, World(tmp_path / "done"), at_once=2)
    lines = done.journal.path.read_bytes().splitlines(keepends=True)
    creations = [place for place, line in enumerate(lines) if json.loads(line)["op_code"] == CREATION]
    assert len(creations) == 8
    for number, place in enumerate(creations):
        folder = tmp_path / str(number)
        (journal := folder / "single" / "first.journal").parent.mkdir(parents=True)
        journal.write_bytes(b"".join(lines[:place]))
        trials = Engine(what, folder, "single", lambda jobs: []).journal.trials()
        pending = [one.number for one in trials if one.state is RUNNING and not _is_paused(one)]
        drawn, _, _ = ask(what, trials, done.journal.attributes, pending)
        assert drawn.params == done.journal.trials()[number].params


def _is_paused(trial: FrozenTrial) -> bool:
    rungs, to = trial.user_attrs.get("rungs", []), trial.user_attrs.get("to", 0)
    return to < len(rungs) and rungs[to] in trial.intermediate_values
