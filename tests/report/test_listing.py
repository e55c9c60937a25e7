"""`etude results`."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from etude.cli.results import main as results
from etude.errors import UserError
from etude.store.run_dir import RunDir

Make = Callable[..., RunDir]


def test_it_prints_csv_and_says_on_stderr_what_it_left_out(
    runs_dir: Path, make_run: Make, capsys: pytest.CaptureFixture[str]
) -> None:
    make_run("base", bleu=43.21)
    make_run("A1", finished=False).log_file.write_text("RuntimeError: in A1\n")
    torn = make_run("A2")
    torn.result_file.write_text("{")
    stranger = runs_dir / "heads" / "A2" / "seed1-stranger"
    stranger.mkdir()
    copy = runs_dir / "heads" / "base" / "seed9-0000000000"
    shutil.copytree(runs_dir / "heads" / "base" / "seed1-1700000060", copy)
    results(["heads"])
    printed = capsys.readouterr()
    header, row = printed.out.splitlines()
    assert header.startswith("study,arm,seed,")
    assert "43.21" in row
    assert printed.err.splitlines() == [
        "Left out: A1, seed 1: failed, RuntimeError: in A1.",
        "Not run: A2, E1, long.",
        f"Left out: {torn.result_file.relative_to(runs_dir.parent)} is incomplete: delete it, and the same command "
        "evaluates the run again.",
        f"Left out: {stranger.relative_to(runs_dir.parent)}, which is no run: it has no config.yaml.",
        f"Left out: {copy.relative_to(runs_dir.parent)}, which is the copy of a run with another seed: its config has "
        "seed 1.",
    ]


def test_files_are_written_as_asked_and_nothing_is_printed(
    runs_dir: Path, make_run: Make, capsys: pytest.CaptureFixture[str]
) -> None:
    make_run("base")
    results(["heads", "--csv", "out.csv", "--json=out.json"])
    assert (runs_dir.parent / "out.csv").read_text().startswith("study,arm,seed,")
    assert json.loads((runs_dir.parent / "out.json").read_text())[0]["arm"] == "base"
    assert capsys.readouterr().out == ""


def test_json_goes_to_a_pipe(runs_dir: Path, make_run: Make, capsys: pytest.CaptureFixture[str]) -> None:
    make_run("base")
    results(["heads", "--json", "-"])
    assert [row["arm"] for row in json.loads(capsys.readouterr().out)] == ["base"]


def test_help_names_the_studies(runs_dir: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        results(["--help"])
    assert "heads" in capsys.readouterr().out.partition("Studies: ")[2]


def test_parquet_is_not_for_the_terminal(make_run: Make) -> None:
    make_run("base")
    with pytest.raises(UserError, match="--parquet - would fill the terminal with bytes: name a file"):
        results(["heads", "--parquet", "-"])
