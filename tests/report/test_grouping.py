"""Of runs of a text or a study that was edited meanwhile, a table holds the newest."""

from collections.abc import Callable
from pathlib import Path

import pytest
import yaml

from etude.errors import UserError
from etude.report import report
from etude.store.run_dir import RunDir

Make = Callable[..., RunDir]


def scores(runs_dir: Path, **where: str) -> dict[str, str]:
    rows = report("heads", runs_dir, where).rows
    place = [f"{column.header} {column.whose}" for column in rows.columns].index("BLEU ours")
    return {row.texts[0]: row.texts[place] for row in rows.rows if row.run}


def left_out(runs_dir: Path, **where: str) -> list[str]:
    return report("heads", runs_dir, where).rows.left_out


def test_of_each_arm_the_runs_of_the_newest_text_are_shown_and_a_key_selects_the_others(
    runs_dir: Path, make_run: Make
) -> None:
    for text, bleu in (("aa11", 10.0), ("bb22", 20.0)):
        for arm in ("base", "A1"):
            make_run(arm, text=text, store=f"store of {text}", bleu=bleu)
    assert scores(runs_dir) == {"base": "20.0", "A1": "20.0"}
    assert left_out(runs_dir) == ["Left out: 2 runs of another config or text than those shown of the same arm."]
    assert scores(runs_dir, text="aa") == scores(runs_dir, text="aa11") == {"base": "10.0", "A1": "10.0"}
    assert left_out(runs_dir, text="aa") == []
    with pytest.raises(UserError, match=r"no finished run has text=beef: text\.txt of a run holds"):
        report("heads", runs_dir, {"text": "beef"})


def test_a_group_that_an_arms_part_brings_along_is_no_other_setting(runs_dir: Path, make_run: Make) -> None:
    file = make_run("E1", bleu=30.0).config_file
    config = yaml.safe_load(file.read_text())
    config["choices"]["model/norm@model.position.norm"] = "rms"  # E1 changes model/position
    file.write_text(yaml.safe_dump(config))
    make_run("base", bleu=20.0)
    assert scores(runs_dir) == {"base": "20.0", "E1": "30.0"}
    assert left_out(runs_dir) == []


def edit(runs_dir: Path, heads: str) -> None:
    """Give the arm A1 other heads in study.yaml."""
    file = runs_dir.parent / "experiments" / "heads" / "study.yaml"
    arms = f'{{base: [], A1: ["model.heads={heads}"]}}'
    file.write_text(f"title: heads\nbaseline: base\narms: {arms}\n")


def heads(number: int) -> dict[str, dict[str, int]]:
    return {"model": {"heads": number}}


def test_of_an_arm_that_was_edited_the_newest_runs_are_shown(runs_dir: Path, make_run: Make) -> None:
    make_run("base", changed=heads(8))
    make_run("A1", bleu=20.0, changed=heads(2))
    make_run("A1", bleu=40.0, changed=heads(4))
    edit(runs_dir, "4")
    assert scores(runs_dir)["A1"] == "40.0"
    assert left_out(runs_dir) == ["Left out: 1 run of another config or text than those shown of the same arm."]


def test_the_runs_with_todays_values_are_shown_though_those_of_before_an_edit_are_newer(
    runs_dir: Path, make_run: Make
) -> None:
    make_run("base", changed=heads(8))
    make_run("A1", bleu=40.0, changed=heads(4))
    make_run("A1", bleu=20.0, changed=heads(2))
    edit(runs_dir, "4")  # back again: `etude sweep` finds the first run finished
    assert scores(runs_dir) == {"base": "40.0", "A1": "40.0"}


@pytest.mark.parametrize("typed", ["4", "4.0", "'4'"])
def test_what_is_typed_and_the_arm_has_by_itself_is_no_setting(typed: str, runs_dir: Path, make_run: Make) -> None:
    make_run("base", changed=heads(8))
    make_run("A1", bleu=20.0, changed=heads(2))
    make_run("A1", bleu=30.0, changed=heads(4), typed=(f"model.heads={typed}",))
    edit(runs_dir, "4")
    assert scores(runs_dir) == {"base": "40.0", "A1": "30.0"}
    assert left_out(runs_dir) == ["Left out: 1 run of another config or text than those shown of the same arm."]
    edit(runs_dir, "2")
    assert scores(runs_dir) == {"base": "40.0", "A1": "20.0"}
    [note] = left_out(runs_dir)
    assert note.startswith("Left out: 1 run of another setting: say model.heads=4")


def test_what_the_arm_has_by_itself_does_not_count_among_the_overrides_of_a_setting(
    runs_dir: Path, make_run: Make
) -> None:
    make_run("A1", bleu=20.0, typed=("model.heads=1",))
    make_run("A1", bleu=30.0, changed={"seed": 1, "model": {"heads": 1, "dropout": 0.3}}, typed=("model.dropout=0.3",))
    assert scores(runs_dir)["A1"] == "20.0"
    assert left_out(runs_dir) == ["Left out: 1 run of another setting: say model.dropout=0.3 to see them."]


@pytest.mark.parametrize("typed", [(), ("budget.max_steps=300",)])
def test_an_arm_that_has_by_itself_what_is_typed_for_all_stands_in_both_tables(
    typed: tuple[str, ...], runs_dir: Path, make_run: Make
) -> None:
    """Its run has one directory, whichever of the two sweeps made it, and the other finds it finished."""
    make_run("base")
    make_run("A1")
    make_run("long", typed=typed)
    longer = {"budget": {"max_steps": 300}}
    make_run("base", bleu=50.0, changed=longer, typed=("budget.max_steps=300",))
    make_run("A1", bleu=50.0, changed=longer, typed=("budget.max_steps=300",))
    asked = {"budget.max_steps": "300"}
    assert [*scores(runs_dir).values()] == ["40.0", "40.0", "40.0"]
    assert [*scores(runs_dir, **asked).values()] == ["50.0", "50.0", "40.0"]
    assert left_out(runs_dir) == ["Left out: 2 runs of another setting: say budget.max_steps=300 to see them."]


def test_an_arm_that_was_edited_and_not_run_since_is_marked(runs_dir: Path, make_run: Make) -> None:
    make_run("base", changed=heads(8))
    make_run("A1", bleu=20.0, changed=heads(2))
    for same in ("2", "2.0", "'2'", "${heads:4}"):  # what an interpolation gives is not computed
        edit(runs_dir, same)
        assert scores(runs_dir) == {"base": "40.0", "A1": "20.0"}
    edit(runs_dir, "4")
    assert scores(runs_dir) == {"base": "40.0", "A1¹": "20.0"}
    note = "¹ Made before study.yaml was edited: the arm has other values now; etude sweep heads makes the runs that "
    assert f"{note}have them." in report("heads", runs_dir, {}).rows.sentences


def test_an_interpolation_that_was_edited_is_marked_where_the_run_kept_what_was_written(
    runs_dir: Path, make_run: Make
) -> None:
    make_run("base", changed=heads(8))
    run = make_run("A1", changed=heads(2))
    run.written_file.write_text("model: {heads: '${heads:4}'}\n")
    edit(runs_dir, "${heads:4}")
    assert [*scores(runs_dir)] == ["base", "A1"]
    edit(runs_dir, "${heads:16}")
    assert [*scores(runs_dir)] == ["base", "A1¹"]


@pytest.mark.parametrize("damage", ["", "[", "a: 1\n b: 2"])
def test_a_damaged_written_config_is_as_none(damage: str, runs_dir: Path, make_run: Make) -> None:
    make_run("base", changed=heads(8)).written_file.write_text(damage)
    make_run("A1", changed=heads(1))
    assert [*scores(runs_dir)] == ["base", "A1"]
