from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from etude.report.render.html.run_files import POINTS, curves, thin_steps
from etude.store.records import Run
from etude.store.run_dir import RunDir

HEADER = "step,tokens,seconds,loss,valid_perplexity\n"


def run(folder: Path, rows: str) -> Run:
    made = RunDir(folder / "heads" / "base" / "seed1-0")
    made.metrics_file.parent.mkdir(parents=True)
    made.metrics_file.write_text(HEADER + rows)
    return Run(made, "heads", "base", 1, {}, {})


def test_a_curve_is_the_mean_over_seeds_between_the_lowest_and_the_highest(tmp_path: Path) -> None:
    runs = [
        run(tmp_path / "1", "10,100,1.0,4.0,\n20,200,2.0,3.0,\n"),
        run(tmp_path / "2", "10,120,3.0,6.0,\n20,200,4.0,3.5,\n"),
    ]
    assert curves(runs) == {
        "loss": {
            "seeds": 2,
            "step": [10, 20],
            "tokens": [110, 200],
            "seconds": [2.0, 3.0],
            "mean": [5.0, 3.25],
            "low": [4.0, 3.0],
            "high": [6.0, 3.5],
        }
    }


def test_steps_and_tokens_are_told_to_the_last_one(tmp_path: Path) -> None:
    found = curves([run(tmp_path / "1", "1234567,98765432,1.0,4.0,\n")])["loss"]
    assert (found["step"], found["tokens"]) == ([1234567], [98765432])


def test_validation_has_points_of_its_own(tmp_path: Path) -> None:
    found = curves([run(tmp_path / "1", "10,100,1.0,4.0,\n20,200,2.0,,30.5\n")])
    assert (found["loss"]["step"], found["valid_perplexity"]["step"]) == ([10], [20])


def test_only_steps_that_every_seed_has_logged_are_averaged(tmp_path: Path) -> None:
    runs = [run(tmp_path / "1", "10,1,1,4,\n20,2,2,3,\n"), run(tmp_path / "2", "10,1,1,4,\n")]
    assert curves(runs)["loss"]["step"] == [10]


def test_a_step_that_was_logged_again_after_a_kill_counts_once(tmp_path: Path) -> None:
    assert curves([run(tmp_path / "1", "10,1,1,4,\n20,2,2,3,\n20,2,2,3,\n")])["loss"]["step"] == [10, 20]


def test_a_run_without_metrics_has_no_curves(tmp_path: Path) -> None:
    empty = Run(RunDir(tmp_path / "none"), "heads", "base", 1, {}, {})
    assert curves([empty]) == curves([]) == {}
    assert curves([empty, run(tmp_path / "1", "10,1,1,4,\n")])["loss"]["seeds"] == 1


def test_a_row_that_is_being_written_is_left_for_later(tmp_path: Path) -> None:
    assert curves([run(tmp_path / "1", "10,100,1.0,4.0,\n20,200,2.0,3.0e")])["loss"]["step"] == [10]


def test_rows_that_hold_no_numbers_are_passed_over(tmp_path: Path) -> None:
    rows = "10,1,1,4,\nten,2,2,3,\n30,nan,3,3,\n40,4,4,2,\n50,5,5,five,\n"
    assert curves([run(tmp_path / "1", rows)])["loss"]["step"] == [10, 40]


def test_a_value_that_is_not_finite_is_no_point(tmp_path: Path) -> None:
    assert curves([run(tmp_path / "1", "10,1,1,nan,\n20,2,2,3,\n30,3,3,inf,\n")])["loss"]["step"] == [20]


@given(st.lists(st.integers(0, 10**6), unique=True, max_size=400).map(sorted), st.integers(2, POINTS))
def test_thinned_steps_keep_both_ends_and_their_order(steps: list[int], most: int) -> None:
    kept = thin_steps(steps, most)
    assert len(kept) == min(len(steps), most)
    assert kept == sorted(set(kept))
    assert set(kept) <= set(steps)
    assert kept[:1] == steps[:1]
    assert kept[-1:] == steps[-1:]
