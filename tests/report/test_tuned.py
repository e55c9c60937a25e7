"""Two readings of one study: a value shared by all arms, and each arm at its own best."""

import json
import math
import os
import re
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml

from etude.cli.results import main
from etude.errors import UserError
from etude.report import report, results
from etude.report.more_trials import on_more_trials
from etude.search.tuning import combinations
from etude.store.run_dir import RunDir
from etude.store.run_state import State, Stop, write_stop
from etude.study.study import load_study

from .conftest import declared, printed

Make = Callable[..., RunDir]


@pytest.fixture
def tried(runs_dir: Path, make_run: Make) -> Make:
    """The study `heads`, which tunes its rate; makes runs with a rate, a validation and a test perplexity."""
    declared(runs_dir, tune={"budget.lr_factor": [0.5, 1.0]}, pilots=[101])

    def make(
        arm: str,
        seed: int,
        rate: float,
        *,
        valid: float = 3.0,
        ppl: float = 3.0,
        scale: str = "pocket",
        store: str = "s0",
    ) -> RunDir:
        budget = {"lr_factor": rate, "steps": 0.1, "max_steps": 100, "target_tokens": 2000}
        typed = (f"budget.lr_factor={rate}",) if rate != 1.0 else ()
        run = make_run(arm, seed, ppl=ppl, typed=typed, changed={"budget": budget}, scale=scale, store=store)
        result = run.result() | {"valid": {"perplexity": valid}}
        run.result_file.write_text(json.dumps(result))
        return run

    return make


def nats(runs_dir: Path) -> dict[str, dict[str, str]]:
    """The cells of Δ ln PPL by arm and whose they are."""
    rows = report("heads", runs_dir, {}).rows
    columns = {column.whose: index for index, column in enumerate(rows.columns) if column.header == "Δ ln PPL"}
    return {row.texts[0]: {whose: row.texts[index] for whose, index in columns.items()} for row in rows.rows}


def test_the_table_holds_the_shared_value_and_each_arm_at_its_own_best(runs_dir: Path, tried: Make) -> None:
    for arm, losses in {"base": {0.5: 4.0, 1.0: 3.0}, "A1": {0.5: 3.0, 1.0: 4.0}}.items():
        for rate, valid in losses.items():
            tried(arm, 101, rate, valid=valid, ppl=99.0)
    tried("base", 11, 1.0, ppl=2.0)
    tried("A1", 11, 1.0, ppl=4.0)
    tried("A1", 11, 0.5, ppl=3.0)
    found = nats(runs_dir)
    assert found["A1"]["ours"] == f"+{math.log(2):.3f}"
    assert found["A1"]["tuned"] == f"+{math.log(1.5):.3f}"
    compared = results("heads", runs_dir).compare()
    assert compared.tuned is not None
    assert (compared.readings.values, compared.readings.trials) == (
        {"base": (1.0,), "A1": (0.5,)},
        {"base": 2, "A1": 2},
    )
    assert [run.seed for arm in compared.arms for run in arm.runs] == [11, 11], "a pilot is in no table"
    told = "tuned: each arm with the best of 2 values, by validation loss on seed 101, which the table does not hold"
    assert (
        f"{told}: budget.lr_factor=1.0: base; budget.lr_factor=0.5: A1." in report("heads", runs_dir, {}).rows.sentences
    )


def test_a_list_of_the_runs_says_which_arms_it_lacks_at_their_own_best(
    runs_dir: Path, tried: Make, capsys: pytest.CaptureFixture[str]
) -> None:
    for rate, valid in {0.5: 3.0, 1.0: 4.0}.items():
        tried("A1", 101, rate, valid=valid)
        tried("base", 101, rate, valid=5.0 - valid)
        tried("A1", 11, rate)
    tried("base", 11, 1.0)
    main(["heads", f"runs_dir={runs_dir}"])
    printed = capsys.readouterr()
    assert len(printed.out.splitlines()) == 1 + 2
    assert "Left out: 1 run of arms at their own best budget.lr_factor: say which to see them." in printed.err


def test_a_list_of_runs_that_share_their_best_lacks_none(
    runs_dir: Path, tried: Make, capsys: pytest.CaptureFixture[str]
) -> None:
    for arm in ("A1", "base"):
        tried(arm, 101, 1.0)
        tried(arm, 11, 1.0)
    main(["heads", f"runs_dir={runs_dir}"])
    assert "at their own best" not in capsys.readouterr().err


@pytest.mark.parametrize("width", [72, 80, 100, 160])
def test_the_widest_table_keeps_every_cell_beside_its_arm(width: int, runs_dir: Path, tried: Make) -> None:
    """Six columns of numbers and both readings do not fit into 80 columns, in one piece."""
    for arm in ("base", "A1"):
        for rate in (0.5, 1.0):
            tried(arm, 101, rate, ppl=99.0)
            for seed in (11, 12, 13):
                tried(arm, seed, rate, ppl=300.0 + 10 * seed)
    made = report("heads", runs_dir, {})
    text = printed(made, width)
    assert "…" not in text
    lines = text.splitlines()
    assert max(len(line.rstrip()) for line in lines) <= width
    columns = [not column.about_arm for column in made.rows.columns]
    for row in made.rows.rows:
        beside = " ".join(line for line in lines if line.split(" ")[0] == row.texts[0])
        missing = [
            cell for cell, of_numbers in zip(row.texts, columns, strict=True) if of_numbers and cell not in beside
        ]
        assert not missing, row.texts[0]


def test_a_trial_that_diverged_was_tried_and_is_no_best(runs_dir: Path, tried: Make) -> None:
    tried("base", 101, 1.0, valid=math.inf)
    tried("base", 101, 0.5, valid=5.0)
    tried("base", 11, 1.0)
    tried("base", 11, 0.5)
    compared = results("heads", runs_dir).compare()
    assert compared.tuned is not None
    assert (compared.readings.values, compared.readings.trials) == ({"base": (0.5,)}, {"base": 2})


def test_without_trials_there_is_one_reading(runs_dir: Path, tried: Make) -> None:
    tried("base", 11, 1.0)
    tried("A1", 11, 1.0)
    assert results("heads", runs_dir).compare().tuned is None
    assert set(nats(runs_dir)["A1"]) == {"ours", "paper"}


def test_pilots_alone_are_shown_as_any_runs_are(runs_dir: Path, tried: Make) -> None:
    """Who looks at pilots wants to see them."""
    tried("base", 101, 1.0)
    tried("A1", 101, 1.0)
    assert [run.seed for run in results("heads", runs_dir).runs] == [101, 101]


def seeds(runs_dir: Path, **where: str) -> list[tuple[str, int]]:
    return [(run.arm, run.seed) for run in results("heads", runs_dir, where).runs]


def test_a_value_is_shared_within_one_setting_and_never_across(runs_dir: Path, tried: Make) -> None:
    """Small runs have another default rate, and other trials."""
    for arm in ("base", "A1"):
        tried(arm, 11, 1.0, ppl=2.0)
    tried("base", 12, 0.5, ppl=4.0, scale="small")
    tried("base", 101, 0.5, valid=1.5, scale="small")
    assert seeds(runs_dir) == [("base", 11), ("A1", 11)]
    assert results("heads", runs_dir).compare().tuned is None, "the trials are of another scale"
    assert seeds(runs_dir, scale="small") == [("base", 12)]
    assert any("another setting" in note for note in results("heads", runs_dir).notes)


def test_runs_at_another_value_are_left_out_by_name_and_can_be_asked_for(runs_dir: Path, tried: Make) -> None:
    tried("base", 11, 1.0, ppl=2.0)
    tried("A1", 11, 1.0, ppl=2.0)
    tried("A1", 12, 0.5, ppl=4.0)
    told = "Left out: 1 run with another budget.lr_factor: say which to see them."
    assert told in results("heads", runs_dir).notes
    assert seeds(runs_dir, **{"budget.lr_factor": "0.5"}) == [("A1", 12)]


def test_pilots_can_be_asked_for_by_their_seed(runs_dir: Path, tried: Make) -> None:
    tried("base", 101, 1.0)
    tried("base", 11, 1.0)
    assert "Left out: 1 run on pilot seeds." in results("heads", runs_dir).notes
    assert seeds(runs_dir, seed="101") == [("base", 101)]
    assert seeds(runs_dir, seed="11") == [("base", 11)]


def test_a_tuned_run_that_diverged_leaves_the_other_reading_alone(runs_dir: Path, tried: Make) -> None:
    tried("base", 101, 0.5)
    tried("base", 11, 1.0)
    tried("base", 11, 0.5, ppl=math.inf)
    compared = results("heads", runs_dir).compare()
    assert "ppl" in compared.baseline.means
    assert not any(note.startswith("tuned:") for note in report("heads", runs_dir, {}).rows.sentences)


def test_a_perplexity_of_nothing_diverged(runs_dir: Path, make_run: Make) -> None:
    make_run("base", ppl=0.0)
    make_run("A1", ppl=2.0)
    assert results("heads", runs_dir).compare().baseline.diverged


def test_pilots_of_more_arms_in_another_setting_do_not_hide_judged_runs(runs_dir: Path, tried: Make) -> None:
    for arm in ("base", "A1", "A2"):
        tried(arm, 101, 1.0)
    tried("base", 11, 1.0, scale="small")
    assert seeds(runs_dir) == [("base", 11)]
    assert seeds(runs_dir, seed="11") == [("base", 11)]
    assert seeds(runs_dir, scale="pocket") == [("base", 101), ("A1", 101), ("A2", 101)], "who asks for them sees them"
    with pytest.raises(UserError, match="no finished run has seed=11 and scale=pocket at once"):
        results("heads", runs_dir, {"seed": "11", "scale": "pocket"})


@pytest.mark.parametrize("names", ["as made", "the other way round"])
def test_of_trials_before_and_after_an_edit_the_newer_decide(names: str, runs_dir: Path, tried: Make) -> None:
    """Whatever their order in the folder is, which is that of their hashes."""
    older = [tried("base", 101, rate, valid=valid) for rate, valid in ((0.5, 4.0), (1.0, 5.0))]
    for run in older:
        edited = run.config() | {"schedule": {"factor": 7.0}}
        written = run.config_file.stat().st_mtime
        run.config_file.write_text(yaml.safe_dump(edited, sort_keys=False))
        os.utime(run.config_file, (written, written))
    newer = [tried("base", 101, rate, valid=valid) for rate, valid in ((0.5, 9.0), (1.0, 5.0))]
    tried("base", 11, 1.0)
    if names == "the other way round":
        for one, other in zip(older, newer, strict=True):
            aside = one.path.rename(one.path.parent / "aside")
            other.path.rename(one.path)
            aside.rename(other.path)
    assert results("heads", runs_dir).compare().readings.values == {"base": (1.0,)}


def test_pilot_seeds_without_anything_to_tune_are_left_out_and_nothing_is_tuned(runs_dir: Path, make_run: Make) -> None:
    declared(runs_dir, pilots=[101])
    for seed in (101, 11):
        make_run("base", seed)
        make_run("A1", seed)
    assert seeds(runs_dir) == [("base", 11), ("A1", 11)]
    assert set(nats(runs_dir)["A1"]) == {"ours", "paper"}


def test_what_is_missing_or_different_in_the_tuned_reading_is_told(runs_dir: Path, tried: Make) -> None:
    for arm in ("base", "A1", "A2"):
        tried(arm, 101, 0.5, valid=2.0)
        for seed in (11, 12):
            tried(arm, seed, 1.0, ppl=3.0 + seed / 100)
    tried("base", 11, 0.5)
    tried("base", 12, 0.5)
    tried("A1", 11, 0.5)
    tried("A1", 12, 0.5, ppl=math.inf)
    tried("A2", 11, 0.5, ppl=math.inf)
    notes = report("heads", runs_dir, {}).rows.sentences
    assert "Tuned: A1, seed 12, diverged (the test perplexity is inf): it enters no mean." in notes
    assert any(note.startswith("Tuned: A2, seed 11, diverged") for note in notes)
    assert "Tuned, the seeds are others: A1 11." in notes


def test_a_tuned_reading_without_its_baseline_says_that_it_compares_nothing(runs_dir: Path, tried: Make) -> None:
    for arm in ("base", "A1"):
        tried(arm, 101, 0.5, valid=2.0)
        tried(arm, 11, 1.0)
    tried("A1", 11, 0.5)
    told = "Tuned: base has no run at its best value, so that nothing is compared."
    assert told in report("heads", runs_dir, {}).rows.sentences


def test_the_best_value_is_the_one_that_a_sweep_runs_whatever_else_was_tried(runs_dir: Path, tried: Make) -> None:
    """`etude sweep heads tuned=true` chooses among the values of study.yaml; in a draw, the first that stands there."""
    for arm in ("base", "A1"):
        for rate, valid in {2.0: 1.5, 1.0: 3.0, 0.5: 3.0}.items():
            tried(arm, 101, rate, valid=valid)
        tried(arm, 11, 1.0)
        tried(arm, 11, 0.5)
    compared = results("heads", runs_dir).compare()
    assert (compared.readings.values, compared.readings.trials) == (
        {"base": (0.5,), "A1": (0.5,)},
        {"base": 2, "A1": 2},
    )
    assert compared.tuned is not None


@pytest.mark.parametrize("written", ["[5e-1, 1]", "['0.5', 1.0]", "['${budget.scale}', 1]"])
def test_a_value_was_tried_however_the_study_writes_it(written: str, runs_dir: Path, tried: Make) -> None:
    study = runs_dir.parent / "experiments" / "heads" / "study.yaml"
    study.write_text(
        study.read_text().replace("- 0.5", "").replace("- 1.0", "").replace("lr_factor:", f"lr_factor: {written}")
    )
    tried("base", 101, 0.5, valid=2.0)
    tried("base", 101, 1.0, valid=3.0)
    tried("base", 11, 1.0)
    readings = results("heads", runs_dir).compare().readings
    assert (readings.values, readings.trials) == ({"base": (0.5,)}, {"base": 2})


def test_perplexities_over_other_subwords_choose_no_value(runs_dir: Path, tried: Make) -> None:
    for arm, store in (("base", "s0"), ("A1", "s1")):
        tried(arm, 101, 0.5, valid=2.0, store=store)
        tried(arm, 101, 1.0, valid=3.0)
        tried(arm, 11, 1.0)
    compared = results("heads", runs_dir).compare()
    assert compared.readings.values == {"base": (0.5,)}
    assert any(note.startswith("Not tuned: A1: with other values of budget.lr_factor") for note in compared.left_out)


def draw(runs_dir: Path, **options: float) -> list[float]:
    """Have the study `heads` draw its rate, the same for all arms; return what it draws."""
    study = runs_dir.parent / "experiments" / "heads" / "study.yaml"
    drawn = {"budget.lr_factor": {"distribution": "log_uniform_values", "min": 0.25, "max": 4.0}} | options
    study.write_text(yaml.safe_dump(yaml.safe_load(study.read_text()) | {"tune": drawn}))
    return [one for (one,) in combinations(load_study("heads"))]


@pytest.fixture
def draws(runs_dir: Path, tried: Make) -> list[float]:
    """What the study `heads` draws: four rates."""
    return draw(runs_dir, trials=4)


def test_of_draws_the_report_chooses_the_one_that_the_sweep_does(
    runs_dir: Path, tried: Make, draws: list[float]
) -> None:
    losses = {"base": [3.0, 4.0, 5.0, 6.0], "A1": [6.0, 5.0, 3.5, 4.0]}
    for arm, valid in losses.items():
        for rate, one in zip(draws, valid, strict=True):
            tried(arm, 101, rate, valid=one)
        tried(arm, 101, 1.234, valid=1.0)  # no draw
        tried(arm, 11, 1.0)
        tried(arm, 11, draws[valid.index(min(valid))])
    made = report("heads", runs_dir, {})
    readings = made.compared.readings
    assert readings.values == {"base": (draws[0],), "A1": (draws[2],)}
    assert readings.losses == {arm: pytest.approx([math.log(one) for one in valid]) for arm, valid in losses.items()}
    notes = [note for note in made.rows.sentences if "4 draws" in note or "twice" in note]
    assert notes[0].startswith("tuned: each arm with the best of 4 draws, the same for all arms, by validation loss")
    assert notes[1].startswith("With twice the 4 trials the order of the arms by validation loss would stay as it is")


def test_in_the_same_hours_one_arm_may_have_more_trials_than_another(runs_dir: Path, tried: Make) -> None:
    draws = draw(runs_dir, trials=9, hours=1)
    losses = {"base": [3.0, 4.0, 5.0, 6.0, 3.2, 7.0], "A1": [6.0, 5.0, 3.5, 4.0]}
    for arm, valid in losses.items():
        for rate, one in zip(draws, valid, strict=False):
            tried(arm, 101, rate, valid=one)
        tried(arm, 11, 1.0)
        tried(arm, 11, draws[valid.index(min(valid))])
    made = report("heads", runs_dir, {})
    readings = made.compared.readings
    assert readings.losses == {arm: pytest.approx([math.log(one) for one in valid]) for arm, valid in losses.items()}
    notes = [note for note in made.rows.sentences if "draws" in note or "twice" in note]
    assert "the best of 4 to 6 draws" in notes[0]
    assert notes[1].startswith("With twice the 4 to 6 trials the order of the arms by validation loss would stay")


def test_while_an_earlier_draw_has_no_result_the_losses_of_an_arm_are_not_told(runs_dir: Path, tried: Make) -> None:
    for place, rate in enumerate(draw(runs_dir, trials=4, hours=1)):
        tried("base", 101, rate, valid=3.0)
        if place != 1:
            tried("A1", 101, rate, valid=4.0)
    for arm in ("base", "A1"):
        tried(arm, 11, 1.0)
    readings = report("heads", runs_dir, {}).compared.readings
    assert readings.trials == {"base": 4, "A1": 3}
    assert [*readings.losses] == ["base"]


def test_a_trial_that_paused_was_tried_and_counts_as_the_worst(runs_dir: Path, tried: Make, draws: list[float]) -> None:
    for arm in ("base", "A1"):
        for rate in draws:
            run = tried(arm, 101, rate, valid=3.0)
            if rate in draws[2:]:
                run.result_file.unlink()
                run.progress_file.write_text(json.dumps({"step": 30, "max_steps": 100}))
                write_stop(run, Stop(30, State.PAUSED))
        tried(arm, 11, 1.0)
        tried(arm, 11, draws[0])
    found = report("heads", runs_dir, {})
    assert found.compared.readings.trials == {"base": 4, "A1": 4}
    assert "The 4 that diverged or were stopped count as the worst" in " ".join(found.rows.sentences)


@pytest.mark.parametrize(
    ("first", "second", "told"),
    [
        ([3.0, 3.1, 3.2, 3.3], [4.0, 4.1, 4.2, 4.3], "would stay as it is, .* otherwise: none in more than 5 %"),
        ([5.0, 5.0, 5.0, 3.0], [3.01, 4.0, 4.0, 4.0], "would stay as it is, .* first and second in 50 %"),
        ([3.0, 3.0, 3.0, 3.1], [3.01, 3.5, 4.0, 6.0], "would become second, first, .* none in more than 5 %"),
    ],
)
def test_the_order_with_twice_the_trials(first: list[float], second: list[float], told: str) -> None:
    [sentence] = on_more_trials({"first": first, "second": second})
    assert re.search(told, sentence)


@pytest.mark.parametrize("losses", [{"first": [1.0] * 9}, {"first": [1.0] * 3, "second": [2.0] * 3}])
def test_of_one_arm_or_three_trials_nothing_is_said(losses: dict[str, list[float]]) -> None:
    assert not on_more_trials(losses)
