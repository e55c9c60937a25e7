"""Tables of runs that belong to no study."""

import csv
import io
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from etude.cli.report import main as report_command
from etude.cli.results import main as results_command
from etude.errors import UserError
from etude.report import report, results, results_of_runs
from etude.search import sweep_file
from etude.store.run_dir import RunDir

Make = Callable[..., RunDir]


@pytest.fixture
def typed(make_run: Make) -> Callable[..., RunDir]:
    """Fabricates a run of `single` with so many heads, and what was typed for it."""

    def make(heads: int, *words: str, seed: int = 1, **more: Any) -> RunDir:
        position = {"_target_": "etude.model.position.sinusoidal"}
        changed = {"model": {"heads": heads, "position": position}, "task": {}, **more.pop("changed", {})}
        run = make_run("base", seed, typed=words, changed=changed, **more)
        place = run.path.parents[2] / "single" / "base" / run.path.name
        place.parent.mkdir(parents=True, exist_ok=True)
        return RunDir(run.path.rename(place))

    return make


def arms(runs_dir: Path, where: dict[str, str] | None = None) -> dict[str, list[int]]:
    return {arm: [run.seed for run in runs] for arm, runs in results("single", runs_dir, where).arms.items()}


def test_what_was_typed_makes_the_rows_and_seeds_are_averaged(typed: Callable[..., RunDir], runs_dir: Path) -> None:
    for seed, ppl in ((1, 3.0), (2, 5.0)):
        typed(4, "model.heads=4", "schedule=wsd", seed=seed, ppl=ppl)
        typed(8, "schedule=wsd", seed=seed, ppl=ppl + 1)
    table = report("single", runs_dir, {})
    assert table.compared.baseline.arm == "base"  # schedule=wsd, which all have, tells no run apart
    assert [(row.texts[0], row.texts[1].split()[0]) for row in table.rows.rows] == [
        ("base", "5.00"),
        ("model.heads=4", "4.00"),
    ]
    assert table.compared.arms[1].against is not None
    assert "schedule=wsd" in " ".join(table.rows.sentences)


def test_runs_of_two_vocabularies_are_two_arms_though_only_their_content_counts(
    typed: Callable[..., RunDir], runs_dir: Path
) -> None:
    for name in ("a", "b"):
        of = {"_target_": "etude.data.vocabularies.Existing", "file": f"{name}.model", "sum": f"sum of {name}"}
        typed(8, f"tokenizer.file={name}.model", changed={"tokenizer": of})
    assert arms(runs_dir) == {"tokenizer.file=a.model": [1], "tokenizer.file=b.model": [1]}


def test_one_config_is_one_row_however_it_was_typed(typed: Callable[..., RunDir], runs_dir: Path) -> None:
    typed(8, seed=1)
    typed(8, "model.heads=8", seed=2)
    typed(4, "model.heads=4", seed=1)
    assert arms(runs_dir) == {"base": [1, 2], "model.heads=4": [1]}


def test_runs_of_another_scale_have_a_table_of_their_own(typed: Callable[..., RunDir], runs_dir: Path) -> None:
    for heads in (2, 4):
        typed(heads, f"model.heads={heads}", "model.dropout=0.3")
    typed(16, "model.heads=16", scale="small")
    assert [*arms(runs_dir)] == ["model.heads=2 model.dropout=0.3", "model.heads=4 model.dropout=0.3"]
    assert "Left out: 1 run of another setting: say budget=small scale=small to see them." in " ".join(
        results("single", runs_dir).notes
    )
    assert [*arms(runs_dir, {"scale": "small"})] == ["model.heads=16"]


def test_a_drawn_number_is_short_in_a_name_unless_names_would_be_alike(
    typed: Callable[..., RunDir], runs_dir: Path
) -> None:
    for number in ("0.123456789", "0.223456789"):
        typed(8, f"schedule.factor={number}", changed={"schedule": {"factor": float(number)}})
    assert [*arms(runs_dir)] == ["schedule.factor=0.1235", "schedule.factor=0.2235"]
    typed(8, "schedule.factor=0.123456788", changed={"schedule": {"factor": 0.123456788}})
    assert len(arms(runs_dir)) == 3


def test_results_have_a_column_for_each_key_that_was_typed(
    typed: Callable[..., RunDir], runs_dir: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    typed(4, "model.heads=4", ppl=3.5)
    typed(8)
    results_command(["single", "--csv", "-"])
    rows = [*csv.DictReader(io.StringIO(capsys.readouterr().out))]
    assert [(row["study"], row["model.heads"], row["test_perplexity"]) for row in rows] == [
        ("single", "8", "3.0"),
        ("single", "4", "3.5"),
    ]


def test_results_of_a_sweep_file_are_its_finished_runs(
    typed: Callable[..., RunDir],
    runs_dir: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    runs = [typed(4, "model.heads=4"), typed(2, "model.heads=2", scale="small")]
    typed(16, "model.heads=16")  # not of the sweep
    asked: list[Sequence[str]] = []

    def plans(name: str, words: Sequence[str]) -> list[tuple[list[str], RunDir]]:
        asked.append((name, *words))
        return [([], run) for run in (*runs, RunDir(runs_dir / "single" / "base" / "seed1-0"))]

    monkeypatch.setattr(sweep_file, "runs_of", plans)
    results_command(["mine.yaml", "run_cap=3", "--csv", "-"])
    printed = capsys.readouterr()
    assert [(row["model.heads"], row["scale"]) for row in csv.DictReader(io.StringIO(printed.out))] == [
        ("4", "pocket"),
        ("2", "small"),
    ]
    assert asked == [("mine.yaml", "run_cap=3")]
    assert printed.err == "Not finished: 1 run of the sweep.\n"
    del runs[:]
    with pytest.raises(UserError, match=r"this makes them: etude sweep mine\.yaml run_cap=3"):
        results_command(["mine.yaml", "run_cap=3"])


@pytest.mark.parametrize(("folder", "pattern"), [("single", "./*"), ("single/base", "seed*"), ("", "~/single/base/*")])
def test_runs_are_found_from_within_their_folder_and_from_the_home_folder(
    typed: Make, runs_dir: Path, folder: str, pattern: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = typed(8).path.absolute()
    monkeypatch.setenv("HOME", str(runs_dir.absolute()))
    monkeypatch.chdir(runs_dir / folder)
    [found] = results_of_runs([pattern]).runs
    assert (found.run_dir.path.absolute(), found.study, found.arm) == (run, "single", "base")


def test_runs_that_are_not_there_or_not_finished_are_told_as_such(typed: Callable[..., RunDir], runs_dir: Path) -> None:
    with pytest.raises(UserError, match="single is not a study"):
        report_command(["single"])
    with pytest.raises(UserError, match="single is not a study"):
        report_command(["single", "--serve"])
    typed(8, finished=False)
    with pytest.raises(UserError, match="--serve=x: a port is a number"):
        report_command(["single", "--serve=x"])
    with pytest.raises(UserError, match="runs holds no finished run of single; etude status single"):
        report_command(["single"])
