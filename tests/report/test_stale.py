"""Results of other code are shown, and said to be."""

from collections.abc import Callable
from pathlib import Path

from etude.report import report
from etude.store.results_version import RESULTS_VERSION
from etude.store.run_dir import RunDir

Make = Callable[..., RunDir]

OTHER = "† made by other code than today's, and kept; stale=rerun computes it again."


def test_an_arm_of_other_code_is_marked_and_the_mark_explained(runs_dir: Path, make_run: Make) -> None:
    make_run("base")
    make_run("A1", 1)
    make_run("A1", 2, version=0)
    make_run("long", version=None)  # no number was recorded
    rows = report("heads", runs_dir, {}).rows
    assert [row.texts[0] for row in rows.rows if row.run] == ["base", "A1†", "long¹†"]
    assert [note for note in rows.sentences if note[0] in "†¶"] == [OTHER]


def test_where_one_mean_is_of_different_code_the_seeds_of_other_code_are_named(runs_dir: Path, make_run: Make) -> None:
    for seed in (1, 2):
        make_run("base", seed, version=0)
        make_run("A1", seed, version=0 if seed == 2 else None)
        make_run("A2", seed, version=0 if seed == 2 else RESULTS_VERSION)
    told = [note for note in report("heads", runs_dir, {}).rows.sentences if "different versions" in note]
    assert told == ["Averaged over seeds of different versions of the code: A1 (seed 1†, 2†); A2 (seed 2†)."]


def test_a_run_whose_part_is_not_here_is_said_to_be_unchecked(runs_dir: Path, make_run: Make) -> None:
    make_run("base", own_files={"gone/scale.py": "0" * 64})
    rows = report("heads", runs_dir, {}).rows
    assert rows.rows[0].texts[0] == "base¶"
    [note] = [note for note in rows.sentences if note.startswith("¶ ")]
    assert "cannot be checked: a file of its own parts is not found here (gone/scale.py)" in note
    assert not [note for note in rows.sentences if "other code" in note]


def test_runs_of_several_versions_of_a_library_are_said_to_be(runs_dir: Path, make_run: Make) -> None:
    for arm, torch in (("base", "2.12.0"), ("A1", "2.13.0")):
        run = make_run(arm)
        run.write_result(run.result() | {"libraries": {"torch": torch}})
    [note] = [note for note in report("heads", runs_dir, {}).rows.sentences if "torch" in note]
    assert (
        note == "These runs were not all made with the same torch: 2.12.0 (1), 2.13.0 (1); they may differ by rounding."
    )


def test_nothing_is_said_of_runs_of_this_code(runs_dir: Path, make_run: Make) -> None:
    make_run("base")
    assert "†" not in report("heads", runs_dir, {}).markdown()


def test_having_asked_for_a_rerun_is_no_other_setting(runs_dir: Path, make_run: Make) -> None:
    make_run("base")
    make_run("A1", typed=("stale=rerun",))
    assert sum(row.run for row in report("heads", runs_dir, {}).rows.rows) == 2
