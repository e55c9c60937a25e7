"""What a report says of a search, made with simulated training."""

import shlex
from dataclasses import replace
from math import inf
from pathlib import Path
from typing import Any

import optuna
import pytest
from tests.search.world import STEPS, Above, World, carry_out, loss, search

from etude.cli.report import main as report
from etude.cli.results import main as results
from etude.errors import UserError
from etude.report.render.rows import Rows
from etude.report.search_table import table
from etude.report.searched import Searched, read_search, rungs
from etude.report.statistics import Scores, expected_best
from etude.search.search import Dimension, Objective, Promotion
from etude.store.run_state import State

PROMOTED = {"promotion": Promotion(), "n_trials": 15}


def at_random(seed: int) -> optuna.samplers.BaseSampler:
    return optuna.samplers.RandomSampler(seed=seed)


def made(folder: Path, world: World | None = None, blows: int = 10**9, **changes: Any) -> Searched:
    engine = carry_out(search(**changes), world or World(folder), blows=blows)
    return read_search(engine.journal.path, "first", "my.yaml")


def said(rows: Rows) -> str:
    return "\n".join(rows.sentences)


def column(rows: Rows, header: str) -> list[str]:
    place = [one.header for one in rows.columns].index(header)
    return [row.texts[place] for row in rows.rows]


def test_the_best_trial_stands_first_with_its_whole_command(tmp_path: Path) -> None:
    found = made(tmp_path)
    rows, best = table(found), found.recorded.best
    assert best
    assert [one.header for one in rows.columns] == ["trial", "x", "k", "loss"]
    assert column(rows, "trial")[0] == str(best.number)
    scores = [float(text.rstrip("†")) for text in column(rows, "loss")]
    assert scores == sorted(scores)
    (command,) = [note.text for note in rows.notes if note.is_command]
    assert shlex.split(command) == ["etude", "train", "fixed=1", *best.overrides]


def test_trials_that_were_paused_or_pruned_stand_below_with_their_step(tmp_path: Path) -> None:
    rows = table(found := made(tmp_path, **PROMOTED))
    states, steps = column(rows, "state"), [int(text) for text in column(rows, "step")]
    finished = states.count("finished")
    assert states[:finished] == ["finished"] * finished
    assert {*states[finished:]} == {"paused", "pruned"}
    assert steps[:finished] == [STEPS] * finished
    assert steps[finished:] == sorted(steps[finished:], reverse=True)
    assert {*steps[finished:]} <= {10, 30}
    for place, trial in enumerate(found.ranked):
        assert trial.score == pytest.approx(float(column(rows, "loss")[place].rstrip("†")), abs=6e-4)


def test_it_says_how_many_ended_how_and_what_share_of_the_steps_they_took(tmp_path: Path) -> None:
    world = World(tmp_path)
    rows = table(found := made(tmp_path, world, **PROMOTED))
    counts = {state: column(rows, "state").count(state) for state in ("finished", "paused", "pruned")}
    assert f"15 trials, {', '.join(f'{number} {state}' for state, number in counts.items() if number)}" in said(rows)
    own = len({trial.runs[0] for trial in found.trials})
    assert f"; {100 * world.trained / (own * STEPS):.0f} % of the steps that all would take" in said(rows)


def test_diverged_trials_stand_last_and_are_not_the_best(tmp_path: Path) -> None:
    def diverging(words: dict[str, str]) -> float:
        return -inf if float(words["x"]) < 0.7 else loss(words)

    found = made(tmp_path, World(tmp_path, diverging))
    states = column(table(found), "state")
    assert states == sorted(states, reverse=True)
    assert "diverged" in states
    assert all(trial.state is State.FINISHED for trial in found.judged)


def test_refused_trials_are_named_with_their_sentence(tmp_path: Path) -> None:
    space = {"x": Dimension(optuna.distributions.FloatDistribution(9.5, 10.2), "9.5 to 10.2")}
    rows = table(made(tmp_path, space=space, sampler=at_random))
    assert "Refused: x is too large (" in said(rows)
    assert "refused" in column(rows, "state")


def test_a_trial_that_is_the_same_run_as_another_is_so_named_and_counts_once(tmp_path: Path) -> None:
    space = {"k": Dimension(optuna.distributions.IntDistribution(1, 2), "1 to 2")}
    found = made(tmp_path, space=space, n_trials=6)
    assert any(state.startswith("as trial ") for state in column(table(found), "state"))
    assert len(found.own) == 2


def test_a_trial_of_several_seeds_is_their_mean_and_tells_how_optimistic_the_best_is(tmp_path: Path) -> None:
    def noisy(words: dict[str, str]) -> float:
        return loss(words) + 0.1 * int(words["seed"]) ** 2

    found = made(tmp_path, World(tmp_path, noisy), seeds=(1, 2, 3))
    (command,) = [note.text for note in table(found).notes if note.is_command]
    assert shlex.split(command)[2:4] == ["-m", "fixed=1"]
    assert command.endswith("seed=1,2,3")
    spread = found.selection.spread
    assert spread
    assert spread[0] == pytest.approx((0.49 / 3) ** 0.5)  # of 0.1, 0.4 and 0.9
    assert spread[1] == 2 * len(found.judged)
    assert "The best of 12 trials is optimistic: chosen for" in said(table(found))


def test_without_other_seeds_it_says_what_would_tell_them(tmp_path: Path) -> None:
    found = made(tmp_path)
    assert "etude sweep FILE confirm=3" in said(table(found))
    best = found.judged[0]
    confirmed = replace(found, confirmed={"baseline": [9.0, 9.5], str(best.number): [1.0, 1.5]})
    assert "a seed has a standard deviation of 0.35)" in said(table(confirmed))
    assert "confirm=3" not in said(table(confirmed))


def test_what_still_runs_has_not_lost_against_the_best(tmp_path: Path) -> None:
    found = made(tmp_path, **PROMOTED)
    begun = [
        replace(t, recorded=replace(t.recorded, end=None, curve={})) if t not in found.judged else t for t in found.own
    ]
    assert found.selection.worse == len(found.own) - len(found.judged) > 0
    assert replace(found, trials=begun).selection.worse == 0


def test_each_rung_is_correlated_with_the_end_among_those_that_came_there(tmp_path: Path) -> None:
    found = made(tmp_path, promotion=Promotion((1 / 9, 1 / 3, 1.0), 2), n_trials=15)
    assert {*rungs(found)} == {10, 30}
    for correlation in rungs(found).values():  # curves do not cross
        assert correlation.arms == len(found.judged)
        assert correlation.value == pytest.approx(1)
    assert "Rank correlation of each rung with the end" in said(table(found))


def test_of_several_numbers_the_front_is_named(tmp_path: Path) -> None:
    found = made(tmp_path, objectives=(Objective("valid.loss"), Objective("test.loss", True)))
    assert {trial.number for trial in found.front} == {t.number for t in found.judged}  # the one is the other's price
    assert "No trial is as good as these in all of 2 numbers" in said(table(found))
    alike = made(tmp_path / "alike", objectives=(Objective("valid.loss"), Objective("test.loss")))
    assert [trial.number for trial in alike.front] == [alike.judged[0].number]


def test_what_breaks_a_constraint_is_not_the_best(tmp_path: Path) -> None:
    bound = {"test.loss": -1.0}
    found = made(tmp_path, World(tmp_path, lambda words: loss(words) - 2.5), constraints=bound)
    assert any(trial.recorded.values[0] > -1 for trial in found.trials)
    assert all(trial.recorded.values[0] <= -1 for trial in found.judged)
    assert column(table(found), "state").count("infeasible") == len(found.trials) - len(found.judged)


@pytest.mark.parametrize("sampler", ["RandomSampler", "TPESampler"])
def test_the_expected_best_is_told_of_trials_that_do_not_depend_on_each_other(sampler: str, tmp_path: Path) -> None:
    engine = carry_out(search(sampler=at_random), World(tmp_path))
    journal = engine.journal
    recipe = journal.study.user_attrs["search"]
    journal.storage.set_study_user_attr(journal.id, "search", recipe | {"sampler": sampler})
    found = read_search(journal.path, "first")
    scores = [trial.recorded.values[0] for trial in found.trials if trial.is_judged]
    expected = expected_best(Scores("search", scores), lower_is_better=True).expected
    assert (f"2: {expected[1]:.3f} ±" in said(table(found))) == (sampler == "RandomSampler")


def test_a_search_that_has_just_begun_has_a_table(tmp_path: Path) -> None:
    found = made(tmp_path, blows=1, **PROMOTED)
    assert column(table(found), "state") == ["paused"]
    assert not any(note.is_command for note in table(found).notes)


def test_a_run_that_was_deleted_leaves_its_trial(tmp_path: Path) -> None:
    found = made(tmp_path)
    for file in found.trials[3].runs[0].path.iterdir():
        file.unlink()
    again = read_search(tmp_path / "runs" / "single" / "first.journal", "first")
    assert len(table(again).rows) == 12


def test_another_name_is_answered_with_those_that_there_are(tmp_path: Path) -> None:
    made(tmp_path, n_trials=1)
    with pytest.raises(UserError, match=r"first\.journal has no search second: it has first"):
        read_search(tmp_path / "runs" / "single" / "first.journal", "second")


def test_the_command_finds_the_journal_of_a_file_by_its_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    made(tmp_path, **PROMOTED)
    monkeypatch.chdir(tmp_path)
    report(["first.yaml"])
    by_file = capsys.readouterr().out
    report(["runs/single/first.journal"])
    assert by_file.splitlines()[2:8] == capsys.readouterr().out.splitlines()[2:8]
    report(["first.yaml", "--markdown", "t.md", "--latex", "t.tex", "--svg", "t.svg"])
    assert all((tmp_path / f"t.{ending}").stat().st_size > 500 for ending in ("md", "tex", "svg"))
    of_journal = read_search

    def confirmed(*words: Any) -> Searched:
        found = of_journal(*words)
        return replace(found, confirmed={"baseline": [9.0, 9.5], str(found.judged[0].number): [1.0, 1.5]})

    monkeypatch.setattr("etude.cli.report.read_search", confirmed)
    report(["first.yaml", "--markdown", "t.md", "--latex", "t.tex", "--svg", "t.svg"])
    assert all("confirmed" in (tmp_path / f"t.{ending}").read_text() for ending in ("md", "tex", "svg"))
    (tmp_path / "runs" / "other").mkdir()
    (tmp_path / "runs" / "other" / "first.journal").touch()
    with pytest.raises(UserError, match="several searches are called first; name one: runs/other/first"):
        report(["first.yaml"])
    with pytest.raises(UserError, match=r"other/first\.journal has no search first: it is empty"):
        report(["runs/other/first.journal"])
    with pytest.raises(UserError, match="--baseline is for a study"):
        report(["runs/single/first.journal", "--baseline", "base"])
    with pytest.raises(UserError, match="holds all of one search: leave out scale=small"):
        report(["runs/single/first.journal", "scale=small"])


def test_results_are_a_row_a_trial(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    import pandas as pd

    found = made(tmp_path, stopping=Above(11.0), n_trials=8)
    monkeypatch.chdir(tmp_path)
    results(["first.yaml", "--csv", "t.csv"])
    read = pd.read_csv(tmp_path / "t.csv")
    assert [*read["trial"]] == [*range(8)]
    assert [*read["state"]] == [str(trial.state) for trial in found.trials]
    assert [*read["x"]] == [float(trial.words["x"]) for trial in found.trials]
    assert {*read["state"]} == {"finished", "pruned"}
    ended = read["state"] == "finished"
    assert read["valid.loss"].notna().tolist() == ended.tolist() == read["curve"].isna().tolist()
