"""docs/record: configs and results of runs that took hours, from which a report can be made again."""

import re
from dataclasses import dataclass
from itertools import product
from pathlib import Path

import pytest

from etude.report import results
from etude.report.comparison import Difference
from etude.runs.material import identify
from etude.runs.records import read_rows
from etude.runs.results_version import RESULTS_VERSION
from etude.runs.run_dir import RunDir
from etude.studies.study import load_study

REPOSITORY = Path(__file__).parents[2]
RECORD = REPOSITORY / "docs" / "record"
RUNS = sorted(file.parent for file in RECORD.glob("*/*/*/seed*/config.yaml"))
COMMAND = re.compile(r"^etude report (\S+) runs_dir=(docs/record/\S+) seed=(\S+)$", re.MULTILINE)


@dataclass(frozen=True)
class Claim:
    """A table of a document below the command that makes it from the record."""

    file: Path
    study: str
    runs_dir: str
    seeds: str
    below: str

    def __str__(self) -> str:
        return f"{self.file.relative_to(REPOSITORY)}: {self.study}, {Path(self.runs_dir).name}"

    def rows(self) -> dict[str, dict[str, str]]:
        """The next table with a column PPL: arm -> heading -> cell."""
        lines = iter(self.below.splitlines())
        headings = next(_cells(line) for line in lines if line.startswith("|") and "PPL" in _cells(line))
        next(lines)
        found = {}
        for line in lines:
            if not line.startswith("|"):
                break
            cells = _cells(line)
            found[cells[0].strip("`§¹")] = dict(zip(headings, cells, strict=True))
        return found


def test_every_run_has_the_number_of_todays_code() -> None:
    """If not, results were changed on purpose, and the record is made anew."""
    others = [run for run in map(RunDir, RUNS) if run.result().get("results_version") != RESULTS_VERSION]
    assert not others, f"{len(others)} of {len(RUNS)}, such as {others[0].path}"
    assert len(RUNS) > 250


def _cells(line: str) -> list[str]:
    return [cell.strip() for cell in line.replace("−", "-").strip().strip("|").split("|")]


def _claims() -> list[Claim]:
    found = []
    for file in sorted((REPOSITORY / "experiments").glob("*/*.md")):
        text = file.read_text(encoding="utf-8")
        for command in COMMAND.finditer(text):
            study, runs_dir, seeds = command.groups()
            found.append(Claim(file, study, runs_dir, seeds, text[command.end() :]))
    return found


CLAIMS = _claims()


@pytest.mark.parametrize("path", RUNS, ids=lambda path: f"{path.parent.name}-{path.name}")
def test_a_recorded_run_is_finished_and_named_by_its_config(path: Path) -> None:
    run = RunDir(path)
    config, text, result = run.config(), run.text(), run.result()
    assert (config["study"], config["arm"]) == (path.parts[-3], path.parts[-2]) == (result["study"], result["arm"])
    assert path.name == f"seed{config['seed']}-{identify(config, text)}"
    assert result["finished"]
    assert result["steps"] == config["budget"]["max_steps"]


@pytest.mark.parametrize("study", sorted({path.parents[1] for path in RUNS}), ids=lambda path: path.name)
def test_all_of_the_record_can_be_read_for_a_report(study: Path) -> None:
    rows, notes = read_rows(study)
    assert len(rows) == len([path for path in RUNS if path.parents[1] == study]) > 0
    assert notes == []


@pytest.mark.parametrize("claim", CLAIMS, ids=str)
def test_a_table_of_a_document_is_that_of_its_record(claim: Claim) -> None:
    """Every arm that was run, its scores and difference to the last printed digit, and its star."""
    compared = results(claim.study, REPOSITORY / claim.runs_dir, {"seed": claim.seeds}).compare()
    rows = claim.rows()
    assert set(rows) == {arm.arm for arm in compared.arms if arm.runs}
    for arm in compared.arms:
        row = rows[arm.arm]
        for metric in compared.study.metrics.values():
            if metric.label in row:
                assert row[metric.label].split(" ± ")[0] == f"{arm.means[metric.name].value:.{metric.digits}f}"
        if "Δ ln PPL" in row:
            assert row["Δ ln PPL"] == (_told(arm.against.differences["ppl"]) if arm.against else "")


def _told(found: Difference) -> str:
    return f"**{found.test.difference:+.3f}**\\*" if found.star else f"{found.test.difference:+.3f}"


@pytest.mark.parametrize("claim", [claim for claim in CLAIMS if claim.study == "table3"], ids=str)
def test_what_is_said_of_the_agreement_with_the_paper_is_that_of_the_record(claim: Claim) -> None:
    compared = results(claim.study, REPOSITORY / claim.runs_dir, {"seed": claim.seeds}).compare()
    assert compared.agreement
    (right, large), rho = compared.agreement.signs, compared.ranks["ppl"].spearman.value
    told = claim.below.split("|")[0]
    points = [point.arm for point in compared.agreement.points.values() if point.large]
    starred = [arm.arm for arm in compared.arms if arm.against and arm.against.differences["ppl"].star]
    significant = len({*points} & {*starred})
    words = "each significant" if significant == large else f"{significant} of them significant"
    assert f"Signs {right} of {large}, {words}" in told
    assert f"ties {compared.agreement.ties[0]} of 7 shown" in told
    assert f"ρ = {rho:.2f}" in told


def test_every_row_of_table_3_is_recorded_with_the_seeds_that_were_judged() -> None:
    for record, seeds in (("multi30k", ("21", "22", "23")), ("pocket", ("31", "32", "33"))):
        runs = {(p.parent.name, p.name[4:].partition("-")[0]) for p in RUNS if p.parts[-4:-2] == (record, "table3")}
        assert runs == {*product(load_study("table3").arms, seeds)}
