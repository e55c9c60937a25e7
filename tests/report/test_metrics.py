"""Every view takes its columns from what a study declares."""

import json
import math
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from etude.cli.status import main as status
from etude.report import make_report, report, results, results_of_csv
from etude.report.comparison import Compared
from etude.report.render.html.data import data
from etude.report.statistics import Scores, moderate, moderated_test
from etude.store.run_dir import RunDir

from .conftest import declared

Make = Callable[..., RunDir]
METRICS = {
    "ppl": {},
    "chrf": {"label": "chrF", "better": "higher"},
    "ter": {"label": "TER", "better": "lower"},
    "exact": {"label": "exact", "digits": 3, "key": "test.exact"},
}
CHRF = {"base": (60.0, 61.0, 62.5), "A1": (50.0, 51.0, 52.0), "A2": (61.0, 60.5, 62.0)}


@pytest.fixture
def measured(runs_dir: Path, make_run: Make) -> Path:
    """Three arms of three seeds in a study that shows chrF, TER and a user's metric, and no BLEU."""
    declared(runs_dir, metrics=METRICS)
    for arm, scores in CHRF.items():
        for seed, score in enumerate(scores, start=1):
            scored(make_run(arm, seed, ppl=3 + 0.01 * seed), chrf=score, ter=100 - score, exact=score / 1000)
    return runs_dir


def scored(run: RunDir, **scores: float) -> None:
    """Adds scores to a result, without BLEU, with a signature of chrF."""
    result = run.result()
    del result["test"]["bleu"]
    result["test"] |= scores | {"chrf_signature": "nc:6"}
    written = run.result_file.stat().st_mtime
    run.write_result(result)
    os.utime(run.result_file, (written, written))


def compared(runs_dir: Path) -> Compared:
    return results("heads", runs_dir).compare()


def test_the_table_has_a_column_and_a_difference_for_each_metric_in_the_order_declared(measured: Path) -> None:
    header, _, base, first, *_ = report("heads", measured, {}).markdown().splitlines()[2:]
    labels = [cell.strip() for cell in header.strip("|").split("|")]
    scores = labels[4:]
    assert [label for label in scores if label.startswith(("PPL", "chrF", "TER", "exact"))] == [
        *("PPL ours", "PPL paper"),
        *("chrF ours", "chrF Δ", "TER ours", "TER Δ", "exact ours", "exact Δ"),
    ]
    assert "BLEU" not in header
    row = dict(zip(labels, [cell.strip() for cell in first.strip("|").split("|")], strict=True))
    assert row["TER Δ"].startswith("**+10.2**")
    assert row["exact Δ"] == "**−0.010**\\*"
    assert "61.2 ± " in base


def test_a_metric_without_sentences_is_tested_over_seeds_as_perplexity_is(measured: Path) -> None:
    scores = {arm: Scores(arm, values) for arm, values in CHRF.items()}
    prior = moderate(scores.values())
    assert prior
    [against] = [arm.against for arm in compared(measured).arms if arm.arm == "A1"]
    assert against
    assert against.differences["chrf"].test == moderated_test(scores["A1"], scores["base"], prior)
    assert against.differences["chrf"].bootstrap is None
    notes = " ".join(report("heads", measured, {}).rows.sentences)
    assert "ln PPL, chrF, TER and exact by a t test over seeds on these very sentences" in notes
    assert "chrF: nc:6" in notes


def test_a_run_from_before_a_metric_has_an_empty_cell_and_its_other_scores(measured: Path, make_run: Make) -> None:
    old = make_run("E1", ppl=2.5)
    [arm] = [arm for arm in compared(measured).arms if arm.arm == "E1"]
    assert [*arm.means] == ["ppl"]
    rows = results("heads", measured).frame()
    assert rows[rows.path == str(old.path)].test_chrf.isna().all()
    assert "chrF was not measured" in " ".join(report("heads", measured, {}).rows.sentences)


def test_where_a_metric_was_not_measured_the_way_to_score_without_training_is_told(
    measured: Path, make_run: Make
) -> None:
    told = "The same sweep with metrics=[chrf,ter] scores finished runs by what they lack, without training."
    assert told not in compared(measured).notes
    make_run("E1", ppl=2.5)
    assert told in compared(measured).notes


@pytest.mark.parametrize(
    ("signature", "store", "why"),
    [
        ("nc:2", "s0", ["its chrF signature is nc:2, base's nc:6"]),
        (
            None,
            "other",
            ["its perplexity is over other text or other subwords", "its chrF signature is None, base's nc:6"],
        ),
    ],
)
def test_scores_of_another_signature_are_not_compared(
    signature: str | None, store: str, why: list[str], measured: Path
) -> None:
    for run in map(RunDir, (measured / "heads" / "A2").glob("seed*")):
        result = run.result() | {"store": store}
        result["test"]["chrf_signature"] = signature
        written = run.result_file.stat().st_mtime
        run.write_result(result)
        os.utime(run.result_file, (written, written))
    [arm] = [arm for arm in compared(measured).arms if arm.arm == "A2"]
    assert arm.against
    assert ("chrf" in arm.against.differences) == (not why)
    assert [told for told in arm.why_not if "tested on another text" not in told] == why


def test_a_score_that_is_not_finite_and_not_of_the_test_set_leaves_the_other_scores(
    runs_dir: Path, make_run: Make
) -> None:
    """Such a run did not diverge, so that its other scores count."""
    told = {"valid": {"key": "valid.perplexity", "scale": "log", "label": "valid PPL"}, "bleu": {"sentences": ""}}
    declared(runs_dir, metrics=told)
    for arm, seed in (("base", 1), ("base", 2), ("A1", 1), ("A1", 2)):
        make_run(arm, seed, valid={"perplexity": math.inf if (arm, seed) == ("A1", 2) else 3.0 + seed})
    found = compared(runs_dir)
    assert {arm.arm: [*arm.means] for arm in found.arms if arm.runs} == {"base": ["valid", "bleu"], "A1": ["bleu"]}
    assert "Not compared: A1: its valid PPL is inf (seed 2)." in found.notes
    [shown] = [arm for arm in data(found)["arms"] if arm["name"] == "A1"]
    assert shown["facts"]["seeds (valid PPL)"] == "1 (4.0), 2 (–)"


def test_the_frame_has_a_column_for_each_metric(measured: Path) -> None:
    row = results("heads", measured).frame().iloc[0]
    assert (row["test_chrf"], row["test_ter"], row["test_exact"]) == (60.0, 40.0, 0.06)
    assert row["test_chrf_signature"] == "nc:6"
    assert "test_bleu" not in row


def test_one_number_of_a_result_divided_by_another_is_a_metric_and_comes_back_from_a_csv(
    runs_dir: Path, make_run: Make
) -> None:
    declared(runs_dir, metrics={"ppl": {}, "speed": {"key": "tokens/seconds", "label": "tok/s"}})
    make_run("base", 1, tokens=3000, seconds=2.0)
    make_run("A1", 1, tokens=3000, seconds=4.0)
    made = report("heads", runs_dir, {})
    assert [arm.means["speed"].value for arm in made.compared.arms if arm.runs] == [1500.0, 750.0]
    results("heads", runs_dir).frame().to_csv("runs.csv", index=False)
    assert make_report(results_of_csv("runs.csv", "heads")).markdown() == made.markdown()


def test_status_shows_the_metrics_of_the_study(measured: Path, capsys: pytest.CaptureFixture[str]) -> None:
    status(["heads"])
    header, first = capsys.readouterr().out.splitlines()[:2]
    assert header.split()[-4:] == ["PPL", "chrF", "TER", "exact"]
    assert first.split()[-4:] == ["3.01", "60.0", "40.0", "0.060"]
    status(["heads", "--json"])
    assert json.loads(capsys.readouterr().out)["runs"][0]["ter"] == 40.0


def test_latex_and_the_page_name_the_same_metrics(measured: Path) -> None:
    made = report("heads", measured, {})
    text = made.latex()
    for label in ("chrF", "TER", "exact"):
        assert rf"\multicolumn{{2}}{{c}}{{{label}}}" in text
    assert made.latex(columns=1).count(r"\begin{tabular}") == len(METRICS), "one below the other"
    page = data(made.compared)
    assert [*page["figures"]["cost"]["choosers"]["y"][1]] == [*METRICS], "the first is shown at first"
    assert page["arms"][0]["facts"]["chrF"].startswith("61.2 (")


def test_a_score_of_nothing_on_a_logarithmic_scale_is_not_compared(runs_dir: Path, make_run: Make) -> None:
    declared(runs_dir, metrics={"ter": {"scale": "log", "better": "lower"}})
    scored(make_run("base"), ter=50.0)
    scored(make_run("A1"), ter=0.0)
    assert "Not compared: A1: its ter is 0, which has no logarithm." in compared(runs_dir).notes


def test_a_metric_that_was_not_measured_is_not_said_to_score_alike(runs_dir: Path, make_run: Make) -> None:
    for arm in ("base", "A1"):
        for seed in (1, 2):
            scored(make_run(arm, seed, ppl=3 + seed / 100))
    notes = " ".join(report("heads", runs_dir, {}).rows.sentences)
    assert "BLEU was not measured" in notes
    assert "score alike" not in notes
