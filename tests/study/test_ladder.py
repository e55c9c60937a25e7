"""The ladder of a study: what it may say, and the runs that it makes."""

from pathlib import Path

import pytest

from etude.errors import UserError
from etude.search.sweep_file import ladder_runs_of, planned_runs, runs_of, sweep_overrides
from etude.study.study import load_study

STUDY = "baseline: base\narms: {base: [], A1: [model.heads=1]}\nladder: "
RUNGS = "{s: [scale.width=0.03125], m: [scale.width=0.046875], l: [scale.width=0.0625], xl: [scale.width=0.078125]}"


def test_the_seeds_of_a_sweep_file_give_way_to_those_of_the_rungs() -> None:
    runs = planned_runs("table3", ["ladder=true"])
    arms, seeds = len(load_study("table3").arms), (3, 3, 1, 1, 1)
    assert len({*map(frozenset, runs)}) == len(runs) == arms * sum(seeds)


def write(folder: Path, ladder: str) -> None:
    (folder / "study.yaml").write_text(STUDY + ladder + "\n")


def test_every_arm_runs_on_every_rung_with_its_seeds(folder: Path) -> None:
    write(folder, f"{{rungs: {RUNGS}, seeds: [3, 2, 1, 1], target: {{parameters: 1.0e+6, tokens: 2.0e+7}}}}")
    ladder = load_study("mine").ladder
    assert ladder
    assert ladder.target == pytest.approx(1.2e14)
    runs = planned_runs("mine", ["ladder=true", "budget=smoke"])
    assert len(runs) == len({*map(tuple, runs)}) == 2 * (3 + 2 + 1 + 1)
    assert ["experiment=mine/A1", "budget=smoke", "scale.width=0.046875", "seed=2"] in runs
    assert [run for run in runs if "seed=3" in run and "scale.width=0.03125" not in run] == []
    assert "hydra.sweeper.ladder=true" in sweep_overrides("mine", ["ladder=true"])


def test_the_study_of_the_document_is_one(folder: Path) -> None:
    page = (Path(__file__).parents[2] / "docs" / "ladders.md").read_text(encoding="utf-8")
    (folder / "study.yaml").write_text(page.partition("```yaml\n")[2].partition("```")[0])
    assert len(planned_runs("mine", ["ladder=true"])) == 3 * 9


def test_a_run_of_a_rung_is_the_run_that_anybody_would_type(folder: Path) -> None:
    """So that what a study has at a rung is not trained again."""
    write(folder, f"{{rungs: {RUNGS}, seeds: [2, 1, 1, 1]}}")
    rungs, places = ladder_runs_of("mine", ["budget=smoke"])
    assert rungs == ["s"] * 4 + ["m"] * 2 + ["l"] * 2 + ["xl"] * 2
    from etude.config.compose_cache import ConfigCache
    from etude.config.freeze import places as places_of

    typed = ["experiment=mine/A1", "budget=smoke", "scale.width=0.0625", "seed=1"]
    assert places_of([typed], ConfigCache())[0].path == places[7].path


@pytest.mark.parametrize(
    ("ladder", "told"),
    [
        ("[1, 2]", "ladder must hold rungs"),
        ("{rungs: {s: [], m: [scale.width=0.1], l: [scale.width=0.2]}, seeds: [2, 1, 1]}", "4 names or more"),
        (f"{{rungs: {RUNGS}, seeds: [2, 1, 1]}}", "a list of 4 numbers"),
        (f"{{rungs: {RUNGS}, seeds: [1, 1, 2, 2]}}", "nothing says how far seeds differ"),
        (f"{{rungs: {RUNGS}, seeds: [2, 1, 1, 1], goal: 3}}", "unknown key 'goal'"),
        (f"{{rungs: {RUNGS}, seeds: [2, 1, 1, 1], target: 1.0e+9}}", "ladder.target must be numbers"),
        (
            f"{{rungs: {RUNGS.replace('scale.width=0.0625', 'model.dropout=0')}, seeds: [2, 1, 1, 1]}}",
            "neither size nor",
        ),
        (
            f"{{rungs: {RUNGS.replace('0.0625', '0.046875')}, seeds: [2, 1, 1, 1]}}",
            "another rung has the same overrides",
        ),
        (f"{{rungs: {RUNGS.replace('scale.width=0.0625', 'wide')}, seeds: [2, 1, 1, 1]}}", "wide is neither size nor"),
    ],
)
def test_a_ladder_that_is_none_is_answered_with_file_and_key(ladder: str, told: str, folder: Path) -> None:
    write(folder, ladder)
    with pytest.raises(UserError, match=rf"study.yaml: .*{told}"):
        load_study("mine")


def test_a_rung_that_would_undo_what_an_arm_tests_is_refused(folder: Path) -> None:
    write(folder, f"{{rungs: {RUNGS}, seeds: [2, 1, 1, 1]}}".replace("scale.width=0.0625", "model.heads=2"))
    with pytest.raises(UserError, match=r"of mine set model.heads, and so does mine/A1, which they would undo"):
        planned_runs("mine", ["ladder=true"])
    assert len(planned_runs("mine", ["ladder=true", "experiment=mine/base"])) == 5


@pytest.mark.parametrize("name", ["mine/nothing", "mine"])
def test_a_mistyped_arm_is_answered_as_without_a_ladder(name: str, folder: Path) -> None:
    write(folder, f"{{rungs: {RUNGS}, seeds: [2, 1, 1, 1]}}")
    with pytest.raises(UserError, match=name):
        [*runs_of("mine", ["ladder=true", f"experiment={name}"])]


@pytest.mark.parametrize("rate", ["schedule.peak=0.01", "budget.lr_factor=0.5"])
def test_a_rung_may_have_a_rate_of_its_own(rate: str, folder: Path) -> None:
    write(
        folder, f"{{rungs: {RUNGS}, seeds: [2, 1, 1, 1]}}".replace("scale.width=0.0625", f"scale.width=0.0625, {rate}")
    )
    assert sum(rate in run for run in planned_runs("mine", ["ladder=true"])) == 2


def test_the_seeds_of_a_ladder_are_no_pilots(folder: Path) -> None:
    write(folder, f"{{rungs: {RUNGS}, seeds: [2, 1, 1, 1]}}\npilots: [1, 3]")
    seeds = {word for run in planned_runs("mine", ["ladder=true"]) for word in run if word.startswith("seed=")}
    assert seeds == {"seed=2", "seed=4"}


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["ladder=true", "seed=1,2"], "the rungs of mine set seed: leave it out"),
        (["ladder=true", "scale.width=1"], "the rungs of mine set scale.width"),
        (["ladder=true", "tuned=true"], "leave out tuned"),
        (["ladder=yes"], "say ladder=true"),
    ],
)
def test_what_does_not_go_with_a_ladder_is_answered(words: list[str], told: str, folder: Path) -> None:
    write(folder, f"{{rungs: {RUNGS}, seeds: [2, 1, 1, 1]}}")
    with pytest.raises(UserError, match=told):
        planned_runs("mine", words)


def test_a_study_without_a_ladder_says_how_to_write_one() -> None:
    with pytest.raises(UserError, match=r"study axes has no ladder; add to its study.yaml"):
        planned_runs("axes", ["ladder=true"])
