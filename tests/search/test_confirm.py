import re
from math import nan
from pathlib import Path
from typing import Any

import pytest
from optuna.distributions import CategoricalDistribution, IntDistribution
from tests.search.world import EVERY, STEPS, World, carry_out, loss, search

from etude.cli.report import main
from etude.errors import UserError
from etude.report.searched import Searched, read_search
from etude.search.confirm import best_trials, confirming_runs, note_confirmation
from etude.search.search import Dimension, Objective, Search
from etude.store.run_dir import RunDir
from etude.store.run_state import State


def test_the_best_trials_and_the_baseline_are_trained_on_seeds_that_the_search_has_not_seen(tmp_path: Path) -> None:
    what = search(fixed=("fixed=1", "seed=4"))
    study = carry_out(what, World(tmp_path)).journal.study
    best = best_trials(what, study.trials, 2)
    assert best[0].value == study.best_value
    runs = confirming_runs(what, best, [], default_seed=1)
    assert [run[-1] for run in runs] == ["seed=5", "seed=6", "seed=7"] * 3
    assert runs[0] == ["fixed=1", "seed=5"]
    assert runs[3] == ["fixed=1", *best[0].user_attrs["overrides"], "seed=5"]


@pytest.mark.parametrize(("fixed", "drawn"), [(("experiment=table3/A1", "fixed=1"), False), (("fixed=1",), True)])
def test_the_baseline_is_that_of_the_study_whose_arm_is_searched(
    fixed: tuple[str, ...], drawn: bool, tmp_path: Path
) -> None:
    arms = {"experiment": Dimension(CategoricalDistribution(["table3/A1", "table3/A2"]), "two arms")} if drawn else {}
    what = search(fixed=fixed, space={"k": Dimension(IntDistribution(1, 3), "1 to 3"), **arms})
    best = best_trials(what, carry_out(what, World(tmp_path)).journal.study.trials, 1)
    runs = confirming_runs(what, best, [], default_seed=1)
    assert [{*run} for run in runs[:3]] == [{"experiment=table3/base", "fixed=1", f"seed={n}"} for n in (2, 3, 4)]
    assert all(any(word in ("experiment=table3/A1", "experiment=table3/A2") for word in run) for run in runs[3:])


def test_what_confirms_is_each_draw_once_on_seeds_that_none_of_its_runs_had(tmp_path: Path) -> None:
    seeds = Dimension(IntDistribution(1, 3), "1 to 3")
    what = search(space={"k": Dimension(IntDistribution(1, 2), "1 to 2"), "seed": seeds})
    study = carry_out(what, World(tmp_path)).journal.study
    best = best_trials(what, study.trials, 3)
    runs = confirming_runs(what, best, study.trials, default_seed=1)
    assert [run for run in runs if run[-1] == "seed=4"] == [["fixed=1", *k, "seed=4"] for k in ([], ["k=1"], ["k=2"])]
    assert {run[-1] for run in runs} == {"seed=4", "seed=5", "seed=6"}


def test_a_trial_that_breaks_a_constraint_is_not_confirmed(tmp_path: Path) -> None:
    what = search(constraints={"test.loss": -1})
    trials = carry_out(what, World(tmp_path)).journal.trials()
    with pytest.raises(UserError, match="no trial is finished yet, or none keeps to the constraints"):
        best_trials(what, trials, 3)


def test_a_draw_that_breaks_a_constraint_is_not_confirmed_when_it_is_drawn_again(tmp_path: Path) -> None:
    few = {"k": Dimension(IntDistribution(1, 2), "1 to 2")}
    world = World(tmp_path, lambda words: float(words.get("k", 2)))
    what = search(space=few, constraints={"neg": -1.5}, n_trials=6)

    class Bounded(World):
        def train(self, run: RunDir) -> State:
            state = super().train(run)
            run.write_result(run.result() | {"neg": -run.result()["valid"]["loss"]})  # k=1 is the best, and forbidden
            return state

    engine = carry_out(what, Bounded(tmp_path, world.score))
    assert sum("same_as" in trial.user_attrs for trial in engine.journal.trials()) == 4
    best = best_trials(what, engine.journal.trials(), 3)
    assert [trial.params for trial in best] == [{"k": 2}]
    recorded = read_search(engine.journal.path, what.name).recorded
    assert recorded.best
    assert recorded.best.values == [2.0]


def confirmed_with(what: Search, world: World) -> Searched:
    """The search, whose best trial and baseline are trained on three seeds more."""
    engine = carry_out(what, world)
    best = best_trials(what, engine.journal.trials(), 1)
    runs = world.freeze(confirming_runs(what, best, [], default_seed=1))
    for run in runs:
        world.train(run)
    note_confirmation(engine.journal.study, best, [run.path.relative_to(world.runs_dir) for run in runs])
    return read_search(engine.journal.path, what.name)


def test_a_report_tells_selection_and_confirmation_apart(tmp_path: Path) -> None:
    world = World(tmp_path)
    found = confirmed_with(search(), world)
    [trial], baseline = found.confirmation
    best = found.recorded.best
    assert best is not None
    assert (trial.name, trial.place) == (f"trial {best.number}", 0)
    assert trial.scores == pytest.approx(best.values * 3)  # in this world a seed makes no difference
    assert baseline is not None
    assert baseline.scores == pytest.approx([world.score({})] * 3)


@pytest.mark.parametrize("scores", [{"valid": {}}, {"valid": {"loss": nan}}], ids=["a curve alone", "a result"])
def test_a_run_that_confirms_and_diverged_enters_no_mean(scores: dict[str, Any], tmp_path: Path) -> None:
    class Diverging(World):
        def train(self, run: RunDir) -> State:
            state = super().train(run)
            if run.config()["words"].get("seed") == "3":
                run.write_result(scores | {"diverged": "its loss is nan", "steps": 60})
            return state

    found = confirmed_with(search(), Diverging(tmp_path))
    [trial], baseline = found.confirmation
    assert baseline
    assert [len(one.scores) for one in (trial, baseline)] == [2, 2]
    assert len([note for note in found.left_out if "which diverged" in note]) == 2


def test_what_was_chosen_for_the_best_of_its_curve_is_confirmed_by_the_best_of_its_curve(tmp_path: Path) -> None:
    rising = (Objective("valid_loss", maximize=True),)
    found = confirmed_with(search(objectives=rising, best_of_curve=True), World(tmp_path))
    [trial], _ = found.confirmation
    assert trial.scores == pytest.approx([found.judged[0].recorded.values[0]] * 3)
    assert found.judged[0].recorded.values[0] == pytest.approx(
        found.judged[0].results[0]["valid"]["loss"] + (STEPS - EVERY) / 10
    )


def test_the_page_of_a_search_shows_its_confirmation_too(tmp_path: Path) -> None:
    def score(words: dict[str, str]) -> float:
        return loss(words) + 0.01 * int(words.get("seed", 1))

    world, what = World(tmp_path, score), search(n_trials=4)
    engine = carry_out(what, world)
    best = best_trials(what, engine.journal.trials(), 1)
    runs = world.freeze(confirming_runs(what, best, [], default_seed=1))
    for run in runs:
        world.train(run)
    page = tmp_path / "page.html"
    main([str(engine.journal.path), "--html", str(page)])
    assert "confirmed" not in page.read_text().partition("<script")[0]
    note_confirmation(engine.journal.study, best, [run.path.relative_to(world.runs_dir) for run in runs])
    main([str(engine.journal.path), "--html", str(page)])
    [section] = re.findall(r'<section id="further0".*?</section>', page.read_text(), re.DOTALL)
    assert "first confirmed</h2>" in section
    assert f"trial {best[0].number}" in section
    assert "baseline" in section
