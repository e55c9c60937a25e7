"""docs/record: configs and results of runs that took hours, from which a report can be made again."""

import re
from itertools import product
from pathlib import Path

import pytest

from etude.paths import shipped
from etude.report import results
from etude.runs.material import identify
from etude.runs.records import read_rows
from etude.runs.run_dir import RunDir
from etude.studies.study import load_study

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


def test_every_row_of_table_3_is_recorded_with_the_three_seeds_that_were_judged() -> None:
    recorded = {(path.parent.name, path.name[4:].partition("-")[0]) for path in RUNS}
    assert recorded == {*product(load_study("table3").arms, ("21", "22", "23"))}


def test_the_results_are_those_of_the_record() -> None:
    """Every perplexity and difference of their table, and the figures by which they are judged."""
    told = (shipped("experiments") / "table3" / "RESULTS.md").read_text(encoding="utf-8").replace("−", "-")
    told = told.split("runs_dir=docs/record/multi30k seed=21,22,23")[1].split("## The paper's own data")[0]
    compared = results("table3", RECORD / "multi30k").compare()
    for arm in compared.arms:
        row = re.search(rf"^\| {arm.arm}§? \|(.*)$", told, re.MULTILINE)
        assert row, arm.arm
        cells = [cell.strip() for cell in row[1].split("|")]
        assert cells[0].split(" ± ")[0] == f"{arm.means['ppl'].value:.2f}"
        if arm.against:
            found = arm.against.differences["ppl"]
            assert cells[1] == (
                f"**{found.test.difference:+.3f}**\\*" if found.star else f"{found.test.difference:+.3f}"
            )
    assert compared.agreement
    signs, ties, rho = compared.agreement.signs, compared.agreement.ties, compared.ranks["ppl"].spearman.value
    assert (signs, ties[0]) == ((12, 12), 3)
    assert f"Signs {signs[0]} of {signs[1]}, eleven of them significant; ρ = {rho:.2f}" in told
    large = [point.arm for point in compared.agreement.points.values() if point.large]
    starred = [arm.arm for arm in compared.arms if arm.against and arm.against.differences["ppl"].star]
    assert len({*large} & {*starred}) == 11
