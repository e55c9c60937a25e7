"""Which runs of ours are the same run at W&B, and which are not."""

import os
import shutil
from pathlib import Path

from etude.store.run_dir import RunDir
from etude.store.wandb_id import MAX_TAG, format_row, keep_rows, logged_as, make_tag, own_id, read_rows, rows_file


def run_of(study: Path) -> RunDir:
    run = RunDir(study / "base" / "seed1-0123456789")
    run.path.mkdir(parents=True, exist_ok=True)
    return run


def test_a_run_that_goes_on_keeps_its_id(tmp_path: Path) -> None:
    run = run_of(tmp_path)
    assert own_id(run) == own_id(run) == logged_as(run)


def test_two_studies_that_share_a_run_have_an_id_each(tmp_path: Path) -> None:
    one, other = (own_id(run_of(tmp_path / study)) for study in ("table3", "modern"))
    assert one != other
    assert one.startswith("0123456789-")
    assert other.startswith("0123456789-")


def test_a_run_that_was_deleted_and_is_trained_again_is_another(tmp_path: Path) -> None:
    before = own_id(run_of(tmp_path))
    shutil.rmtree(run_of(tmp_path).path)
    assert own_id(run_of(tmp_path)) != before


def test_a_run_begun_when_the_hash_was_the_id_goes_on_under_it(tmp_path: Path) -> None:
    run = run_of(tmp_path)
    rows_file(run, "0123456789").parent.mkdir()
    rows_file(run, "0123456789").write_bytes(b"...")
    assert own_id(run) == logged_as(run) == "0123456789"


def test_what_an_agent_called_a_run_is_not_its_own_id(tmp_path: Path) -> None:
    run = run_of(tmp_path)
    own = own_id(run)
    rows_file(run, "agent007").touch()
    os.utime(rows_file(run, own), (0, 0))
    assert logged_as(run) == "agent007"
    assert own_id(run) == own


def test_the_rows_that_were_logged_come_back_in_their_order(tmp_path: Path) -> None:
    run = run_of(tmp_path)
    id = own_id(run)
    assert read_rows(run, id) == []
    with keep_rows(run, id, [(1, ""), None, (1, "v")]) as file:
        file.write(format_row((20, "c2")))
        file.write(b"21")  # a kill in mid line
    assert read_rows(run, id) == [(1, ""), None, (1, "v"), (20, "c2")]
    keep_rows(run, id, read_rows(run, id)[:2]).close()
    assert read_rows(run, id) == [(1, ""), None]


def test_the_tags_of_studies_with_long_names_are_taken_and_differ() -> None:
    assert make_tag("study", "table3") == "study=table3"
    tags = [make_tag("study", f"{'x' * 58}{end}") for end in ("", "a", "b", "a" * 99)]
    assert len(set(tags)) == len(tags)
    assert {len(tag) for tag in tags} == {MAX_TAG}
