"""experiments/<study>/record.csv: numbers of runs that took hours, from which the tables of the documents are made."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from itertools import product
from pathlib import Path

import pytest

from etude.report import frame, ladder_table, results_of_csv
from etude.report.comparison import Compared, Difference
from etude.report.ladder import ladder_of_csv
from etude.store.results_version import RESULTS_VERSION
from etude.study.study import load_study

REPOSITORY = Path(__file__).parents[2]
RECORDS = sorted(REPOSITORY.glob("experiments/*/record.csv"))
COMMAND = re.compile(r"^etude report (\S+) --from (\S+) (.+)$", re.MULTILINE)


@dataclass(frozen=True)
class Claim:
    """A table of a document below the command that makes it from the record."""

    file: Path
    study: str
    record: str
    where: str
    below: str

    def __str__(self) -> str:
        return f"{self.file.relative_to(REPOSITORY)}: {self.where}"

    def compared(self) -> Compared:
        return _compared(self.record, self.study, self.where)

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


@cache
def _compared(record: str, study: str, where: str) -> Compared:
    return results_of_csv(REPOSITORY / record, study, dict(word.split("=") for word in where.split())).compare()


def _cells(line: str) -> list[str]:
    return [cell.strip() for cell in line.replace("−", "-").strip().strip("|").split("|")]


def _claims() -> Iterator[Claim]:
    for file in sorted((REPOSITORY / "experiments").glob("*/*.md")):
        text = file.read_text(encoding="utf-8")
        for command in COMMAND.finditer(text):
            yield Claim(file, *command.groups(), below=text[command.end() :])


CLAIMS = [claim for claim in _claims() if claim.where != "--ladder"]
LADDERS = [claim for claim in _claims() if claim.where == "--ladder"]


def test_there_is_a_table_of_every_record_but_that_of_a_single_arm() -> None:
    assert {Path(claim.record).parent.name for claim in CLAIMS} == {file.parent.name for file in RECORDS} - {"multi30k"}
    assert len(CLAIMS) == 12


@pytest.mark.parametrize("file", RECORDS, ids=lambda file: file.parent.name)
def test_every_run_of_a_record_is_of_todays_code_and_finished(file: Path) -> None:
    """If not, results were changed on purpose, and the record is made anew."""
    study = load_study(file.parent.name)
    runs = frame.read_csv(file, study.name, study.metrics)
    assert {run.result["results_version"] for run in runs} == {RESULTS_VERSION}
    assert {run.arm for run in runs} <= {*study.arms}
    assert all(run.finished and not run.divergence for run in runs)


@pytest.mark.parametrize("claim", CLAIMS, ids=str)
def test_a_table_of_a_document_is_that_of_its_record(claim: Claim) -> None:
    """Every arm that was run, its scores and difference to the last printed digit, and its star."""
    compared, rows = claim.compared(), claim.rows()
    ran = [arm for arm in compared.arms if arm.runs]
    assert set(rows) == {arm.arm for arm in ran}
    for arm in ran:
        row = rows[arm.arm]
        for metric in compared.study.metrics.values():
            if metric.label in row:
                assert row[metric.label].split(" ± ")[0] == f"{arm.means[metric.name].value:.{metric.digits}f}"
            if metric.is_log and f"Δ {metric.compared_label}" in row:
                told = _told(arm.against.differences[metric.name]) if arm.against else ""
                assert row[f"Δ {metric.compared_label}"] == told


@pytest.mark.parametrize("claim", LADDERS, ids=lambda claim: claim.record)
def test_the_table_of_a_ladder_is_that_of_its_record(claim: Claim) -> None:
    """What came at each rung, what was predicted of those that were held out, and what missed."""
    study = load_study(claim.study)
    ladder = ladder_of_csv(REPOSITORY / claim.record, study.baseline, [study.lead])
    lines = [_cells(line) for line in claim.below.splitlines() if line.startswith("| ") or line.startswith("| :")]
    table = lines[: 2 + len(ladder.arms)]
    rungs = len(ladder.rungs) + len(ladder.judged)
    assert table[2:] == [
        [text.replace("−", "-") for text in row.texts[: 1 + rungs]] for row in ladder_table.table(ladder).rows
    ]
    told = " ".join(claim.below.split("|")[0].split())
    decided = [one.decisions for one in ladder.judged]
    assert " and ".join(f"{one.clear_right} of {one.clear}" for one in decided) in told
    assert (
        f"{' and '.join(f'{100 * one.right / one.pairs:.0f}' for one in decided)} % came in the predicted order" in told
    )
    covered = [len(one.covered) for one in ladder.judged]
    assert f"{covered[0]} of the 19 differences at width 80 and {covered[1]} at width 96 lie within" in told


def _told(found: Difference) -> str:
    return f"**{found.test.difference:+.3f}**\\*" if found.star else f"{found.test.difference:+.3f}"


@pytest.mark.parametrize("claim", [claim for claim in CLAIMS if claim.study == "table3"], ids=str)
def test_what_is_said_of_the_agreement_with_the_paper_is_that_of_the_record(claim: Claim) -> None:
    compared = claim.compared()
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


@pytest.mark.parametrize("claim", [claim for claim in CLAIMS if claim.study == "narang2021"], ids=str)
def test_the_signs_of_the_second_papers_table_are_those_of_the_record(claim: Claim) -> None:
    compared = claim.compared()
    assert compared.agreement
    points, rho = compared.agreement.points.values(), compared.ranks["early"].spearman.value
    right = {side: [p.agrees for p in points if p.large and (p.paper < 0) == (side < 0)] for side in (-1, 1)}
    told = " ".join(claim.below.split("|")[0].split())
    assert f"better {sum(right[-1])} of {len(right[-1])}, worse {sum(right[1])} of {len(right[1])}" in told
    assert f"ρ = {rho:.2f}" in told


def test_every_row_of_table_3_is_recorded_with_the_seeds_that_were_judged() -> None:
    study = load_study("table3")
    runs = frame.read_csv(REPOSITORY / "experiments/table3/record.csv", study.name, study.metrics)
    for data, seeds in (("multi30k_en_de", (21, 22, 23)), ("grammar", (31, 32, 33))):
        assert {(run.arm, run.seed) for run in runs if run.choices["data"] == data} == {*product(study.arms, seeds)}
