"""docs/record: configs and results of runs that took hours, from which a report can be made again."""

import re
from pathlib import Path

import pytest

from etude.paths import shipped
from etude.runs.material import identify
from etude.runs.records import read_rows
from etude.runs.run_dir import RunDir

RECORD = Path(__file__).parents[2] / "docs" / "record"
RUNS = sorted(file.parent for file in RECORD.glob("*/*/*/seed*/config.yaml"))


@pytest.mark.parametrize("path", RUNS, ids=lambda path: f"{path.parent.name}-{path.name}")
def test_a_recorded_run_is_finished_and_named_by_its_config(path: Path) -> None:
    run = RunDir(path)
    config, text, result = run.config(), run.text_file.read_text().strip(), run.result()
    assert (config["study"], config["arm"]) == (path.parts[-3], path.parts[-2]) == (result["study"], result["arm"])
    assert path.name == f"seed{config['seed']}-{identify(config, text)}"
    assert result["finished"]
    assert result["steps"] == config["budget"]["max_steps"]


def test_all_of_the_record_can_be_read_for_a_report() -> None:
    rows, notes = read_rows(RECORD / "multi30k" / "table3")
    assert len(rows) == len(RUNS) > 0
    assert notes == []


def test_the_results_name_the_rows_that_are_recorded() -> None:
    results = " ".join((shipped("experiments") / "table3" / "RESULTS.md").read_text(encoding="utf-8").split())
    told = re.findall(r"Of seed (\d+) there are (\d+) rows so far \(([\w, ]+)\)", results)
    recorded: dict[str, set[str]] = {}
    for path in RUNS:
        recorded.setdefault(path.name[4:].partition("-")[0], set()).add(path.parent.name)
    assert {seed: {*re.findall(r"\w+", names)} for seed, _, names in told} == recorded
    assert all(int(number) == len(recorded[seed]) for seed, number, _ in told)
