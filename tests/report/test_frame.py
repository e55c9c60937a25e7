"""A row a run, as a DataFrame and in files, and read back from a CSV of étude's or of anybody's."""

import json
import re
import sys
from collections.abc import Callable
from pathlib import Path

import pandas as pd
import pytest

from etude.cli.report import main as report_command
from etude.cli.results import main as results_command
from etude.errors import UserError
from etude.report import frame, make_report, report, results, results_of_csv
from etude.report.frame import as_json, write_parquet
from etude.store.records import read_rows
from etude.store.run_dir import RunDir
from etude.study.metrics import Metric
from etude.study.study import load_study

Make = Callable[..., RunDir]


def test_there_is_one_row_a_run_in_the_order_of_the_arms_and_seeds(runs_dir: Path, make_run: Make) -> None:
    make_run("E1", 1)
    make_run("base", 2)
    make_run("base", 1)
    make_run("A1", finished=False)
    rows = results("heads", runs_dir).frame()
    assert [*zip(rows.arm, rows.seed, strict=True)] == [("base", 1), ("base", 2), ("E1", 1)]


def test_a_row_says_what_the_run_is_and_what_it_found(runs_dir: Path, make_run: Make) -> None:
    run = make_run("E1", 3, ppl=2.5, bleu=41.25, tokens=1000, text="aa11", typed=("model.dropout=0.3",))
    [row] = results("heads", runs_dir).frame().to_dict("records")
    expected = {
        "study": "heads",
        "arm": "E1",
        "seed": 3,
        "state": "finished",
        "model.heads": 8,
        "model/position": "learned",
        "budget.max_steps": 100,
        "scale": "pocket",
        "overrides": "model.dropout=0.3 scale=pocket",
        "test_perplexity": 2.5,
        "test_bleu": 41.25,
        "test_signature": "nrefs:1|tok:13a",
        "parameters": 526_123,
        "tokens": 1000,
        "code": "same",
        "results_version": 1,
        "text": "aa11",
        "path": str(run.path),
    }
    assert {key: row[key] for key in expected} | {"overrides": " ".join(sorted(row["overrides"].split()))} == expected
    assert pd.isna(row["flops"])


def test_the_columns_are_those_that_the_documentation_names(runs_dir: Path, make_run: Make) -> None:
    make_run("base")
    columns = {*results("heads", runs_dir).frame()}
    config = {"model.heads", "model/position", "budget.max_steps", "data", "scale", "budget"}
    lines = [line[4:] for line in (frame.__doc__ or "").splitlines() if re.match(r" {4}\S", line)]
    listed = [re.split(r" {3,}", line)[0] for line in lines]
    documented = {name for line in listed if "<" not in line for name in line.split(", ") if name}
    assert documented == columns - config


def test_a_key_in_which_two_runs_differ_is_a_column_and_one_that_follows_from_it_is_none(
    runs_dir: Path, make_run: Make
) -> None:
    for arm, size in (("base", 64), ("A1", 32)):
        run = make_run(arm, changed={"loss": {"smoothing": 0.1 * size}, "head": {"d_model": size}, "same": 1})
        run.written_file.write_text("{head: {d_model: '${model.d_model}'}, same: 1}")
    assert {"loss.smoothing", "head.d_model", "same"} & {*results("heads", runs_dir).frame()} == {"loss.smoothing"}


def test_a_filter_selects_and_settings_are_not_mixed(runs_dir: Path, make_run: Make) -> None:
    make_run("base", scale="small")
    make_run("base", scale="pocket")
    make_run("A1", scale="pocket")
    found = results("heads", runs_dir)
    assert [*found.frame().arm] == ["base", "A1"]
    assert found.notes == ["Left out: 1 run of another setting: say budget=small scale=small to see them."]
    assert len(results("heads", runs_dir, {"scale": "small"}).frame()) == 1


def test_json_and_parquet_give_the_same_numbers_back(runs_dir: Path, make_run: Make, tmp_path: Path) -> None:
    pytest.importorskip("pyarrow", reason="pyarrow is not installed")
    make_run("base", ppl=1 / 3, bleu=200 / 7, tokens=1000)
    make_run("A1", ppl=float("inf"))
    rows = results("heads", runs_dir).frame()
    read = json.loads(as_json(rows), parse_constant=lambda name: pytest.fail(f"{name} is no JSON"))
    assert [row["test_perplexity"] for row in read] == [1 / 3, None]
    assert [row["tokens"] for row in read] == [1000, None]
    write_parquet(rows, tmp_path / "runs.parquet")
    assert as_json(pd.read_parquet(tmp_path / "runs.parquet")) == as_json(rows)


def test_a_column_of_numbers_and_words_is_one_of_words_in_parquet(tmp_path: Path) -> None:
    pytest.importorskip("pyarrow", reason="pyarrow is not installed")
    write_parquet(pd.DataFrame({"a": [1, "auto", None]}), tmp_path / "runs.parquet")
    assert pd.read_parquet(tmp_path / "runs.parquet").a.dropna().to_list() == ["1", "auto"]


def test_without_pyarrow_there_is_a_way_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(UserError, match="--parquet needs pyarrow: pip install pyarrow, or write --csv"):
        write_parquet(pd.DataFrame({"a": [1]}), tmp_path / "runs.parquet")


def test_a_csv_gives_the_same_table_back(runs_dir: Path, make_run: Make) -> None:
    """With stars, costs, marks, settings and what is no equal comparison; no translations were kept."""
    for seed in (1, 2, 3):
        make_run("base", seed, ppl=3.0 + 0.01 * seed, tokens=1000, paper_bleu=39.0, typed=("model.dropout=0.3",))
        make_run("A1", seed, ppl=3.5 + 0.01 * seed, tokens=2000, bleu=30.0 + seed, typed=("model.dropout=0.3",))
        make_run("A2", seed, version=0, signature="nrefs:2", typed=("model.dropout=0.3",))
    make_run("E1", ppl=float("nan"), typed=("model.dropout=0.3",))
    make_run("long", changed={"loss": {"smoothing": [0.1, None]}, "precision": "64"}, typed=("model.dropout=0.3",))
    results_command(["heads", "--csv", "runs.csv"])
    made = report("heads", runs_dir, {})
    again = make_report(results_of_csv("runs.csv", "heads"))
    assert "*" in made.markdown()
    assert again.markdown() == made.markdown()
    written = ("runs.csv", "again.csv")
    results_command(["heads", "--from", written[0], "--csv", written[1]])
    first, second = (pd.read_csv(file).drop(columns=["path", "code", "results_version"]) for file in written)
    pd.testing.assert_frame_equal(first, second)


def test_a_shown_value_that_follows_from_another_is_no_confound_in_a_csv_either(runs_dir: Path, make_run: Make) -> None:
    for arm, size in (("base", 8), ("E1", 4)):
        run = make_run(arm, changed={"model": {"heads": size}, "loss": {"smoothing": size}})
        run.written_file.write_text("model: {heads: '${loss.size}'}")
    results_command(["heads", "--csv", "runs.csv"])
    for made in (report("heads", runs_dir, {}), make_report(results_of_csv("runs.csv", "heads"))):
        assert "¹ Not an equal comparison: loss.smoothing 4 (baseline: 8)." in made.rows.sentences


def test_runs_that_share_their_trainings_share_them_in_a_csv_too(runs_dir: Path, make_run: Make) -> None:
    for seed in (1, 2):
        for arm, beam in (("base", 4), ("A2", 8)):
            model = {"heads": 8}
            make_run(arm, seed, bleu=40.0 + seed, changed={"model": model, "decoding": {"beam": beam}}, store="s")
    results_command(["heads", "--csv", "runs.csv"])
    assert (
        "The same trainings as what they are held against: A2"
        in make_report(results_of_csv("runs.csv", "heads")).markdown()
    )


def test_arms_that_a_csv_cannot_tell_apart_are_no_copies_where_their_trainings_differ(
    runs_dir: Path, make_run: Make
) -> None:
    make_run("base")
    make_run("A1", changed={"model": {"heads": 1, "part": {"_target_": "one.Class"}}})
    make_run("A2", changed={"model": {"heads": 1, "part": {"_target_": "another.Class"}}})
    results_command(["heads", "--csv", "runs.csv"])
    rows = pd.read_csv("runs.csv")
    assert "same run" not in report("heads", runs_dir, {}).markdown()
    rows.drop(columns="model.part").to_csv("less.csv", index=False)
    assert "same run" not in make_report(results_of_csv("less.csv", "heads")).markdown()


def test_a_csv_of_runs_from_before_and_after_an_edit_shows_those_of_today(runs_dir: Path, make_run: Make) -> None:
    make_run("A1", ppl=2.0, typed=("model.heads=1",))
    make_run("A1", ppl=3.0, changed={"model": {"heads": 2}})
    frame.frame(load_study("heads"), read_rows(runs_dir / "heads")[0]).to_csv("runs.csv", index=False)
    found = results_of_csv("runs.csv", "heads")
    assert [run.score("test.perplexity") for run in found.runs] == [2.0]
    assert found.notes == ["Left out: 1 run of another config or text than those shown of the same arm."]


FOREIGN = """\
arm,seed,test_loss,host
small,1,3.30,a
small,2,3.32,b
small,3,3.31,c
large,1,3.10,a
large,2,3.12,b
large,3,3.11,c
"""


@pytest.fixture
def foreign(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    Path("theirs.csv").write_text(FOREIGN)
    return Path("theirs.csv")


def test_a_csv_of_any_trainer_gets_table_statistics_latex_and_page(
    foreign: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["--from", "theirs.csv", "--baseline", "small", "--metric", "test_loss:lower:log"]
    report_command(["mine", *words, "--markdown", "-", "--latex", "table.tex", "--html", "page.html"])
    shown = capsys.readouterr().out
    assert "| small | 3.310 ± 0.025 |  | 3 |" in shown
    assert "| large | 3.110 ± 0.025 | **−0.062**\\* | 3 |" in shown
    assert not {"†", "§"} & {*shown}
    assert "same run" not in shown
    assert r"\textbf{$-$0.062}" in Path("table.tex").read_text()
    assert "<b>−0.062*</b>" in Path("page.html").read_text()
    report_command([*words, "--markdown", "-"])
    assert capsys.readouterr().out.replace("theirs", "mine") == shown.partition("\n")[2]


@pytest.mark.parametrize(
    ("header", "cells"),
    [
        ("loss,accuracy", ["2.01,0.5", "2.02,0.6", "1.91,0.7", "1.92,0.75"]),  # a group's name, and a score
        ("train/loss,accuracy", ["0.31,0.5", "0.32,0.6", "0.29,0.7", "0.28,0.75"]),
        ("precision,accuracy", ["0.91,0.5", "0.92,0.6", "0.93,0.7", "0.94,0.75"]),  # a key's name
        ("precision,accuracy", ["0.91,0.5", "0.92,0.6", "0.93,0.7", "0.93,0.75"]),
        ("optimizer,accuracy", ["adam,0.5", "adam,0.6", "adamw,0.7", "adamw,0.75"]),  # what the arms change
        ("diverged,accuracy", ["False,0.5", "False,0.6", "False,0.7", "False,0.75"]),
        ("averaging,accuracy", ["True,0.5", "True,0.6", "ema,0.7", "ema,0.75"]),  # a section's name
        ("callbacks,accuracy", ['"[""ema""]",0.5', '"[""ema""]",0.6', ",0.7", ",0.75"]),
    ],
)
def test_columns_of_another_trainer_leave_all_runs_in_one_table(header: str, cells: list[str], foreign: Path) -> None:
    places = ("base,1", "base,2", "a,1", "a,2")
    lines = [f"arm,seed,{header}", *(f"{place},{cell}" for place, cell in zip(places, cells, strict=True))]
    foreign.write_text("\n".join([*lines, ""]))
    found = results_of_csv(foreign, metrics=[Metric("accuracy", "accuracy", "accuracy")])
    assert [(run.arm, run.seed) for run in found.selection.runs] == [("base", 1), ("base", 2), ("a", 1), ("a", 2)]
    assert {arm.arm: arm.means["accuracy"].value for arm in found.compare().arms} == pytest.approx(
        {"base": 0.55, "a": 0.725}
    )


def test_a_number_of_which_all_arms_have_each_is_a_setting_though_each_has_one_seed(foreign: Path) -> None:
    foreign.write_text("arm,seed,model.heads,loss\nbase,1,4,1.0\nbase,1,8,2.0\na,1,4,3.0\na,1,8,4.0\n")
    loss = Metric("loss", "loss", "loss", better="lower")
    found = results_of_csv(foreign, where={"model.heads": "8"}, metrics=[loss])
    assert [(run.arm, run.score("loss")) for run in found.runs] == [("base", 2.0), ("a", 4.0)]


@pytest.mark.parametrize("column", ["val/loss", "test.loss", "eval/mean.loss"])
def test_a_column_is_named_as_it_stands_in_the_file(column: str, foreign: Path) -> None:
    foreign.write_text(f"arm,seed,{column}\nbase,1,2.0\na,1,3.0\n")
    report_command(["--from", "theirs.csv", "--metric", f"{column}:lower", "--markdown", "t.md"])
    assert f"| arm | {column} |" in Path("t.md").read_text()
    assert "| a | 3.000 |" in Path("t.md").read_text()


def test_a_quotient_of_two_columns_is_a_metric_where_no_column_has_its_name(foreign: Path) -> None:
    foreign.write_text("arm,seed,steps,seconds\nbase,1,10,5\na,1,9,3\n")
    report_command(["--from", "theirs.csv", "--metric", "steps/seconds:higher", "--markdown", "t.md"])
    assert "| a | 3.000 |" in Path("t.md").read_text()


def test_runs_of_another_trainer_are_not_said_to_lack_what_a_sweep_would_score(foreign: Path) -> None:
    foreign.write_text("arm,seed,bleu\nbase,1,30.1\na,1,31.1\n")
    report_command(["--from", "theirs.csv", "--metric", "bleu:higher", "--markdown", "t.md"])
    assert "same sweep" not in Path("t.md").read_text()


def test_what_differs_within_an_arm_of_another_trainer_is_another_setting(foreign: Path) -> None:
    rows = [f"{arm},{seed},{heads},{heads / 4 + seed}" for heads in (4, 8) for arm in ("base", "a") for seed in (1, 2)]
    foreign.write_text("\n".join(["arm,seed,model.heads,loss", *rows, ""]))
    loss = Metric("loss", "loss", "loss", better="lower")
    for heads in (4, 8):
        found = results_of_csv(foreign, where={"model.heads": str(heads)}, metrics=[loss])
        assert {run.config["model"]["heads"] for run in found.selection.runs} == {heads}
        assert len(found.selection.runs) == 4


def test_several_metrics_of_a_csv_are_compared_and_a_missing_one_is_said_to_be(foreign: Path) -> None:
    foreign.write_text("arm,seed,loss,acc\na,1,2,90\na,2,2.1,91\nb,1,3,\nb,2,3.1,\nc,1,nan,0\n")
    report_command(
        ["--from", "theirs.csv", "--baseline", "a", "--metric", "loss:lower,acc:higher", "--markdown", "t.md"]
    )
    table = Path("t.md").read_text()
    assert "| b | 2.550 ±" not in table
    assert "acc was not measured" in table
    assert "c, seed 1, diverged (its loss is nan)" in table


def test_the_first_metric_that_a_csv_has_says_whether_a_run_diverged(foreign: Path) -> None:
    foreign.write_text("arm,seed,test_bleu\na,1,20\na,2,nan\na,3,22\n")
    [arm] = results_of_csv(foreign).compare().arms
    assert (arm.means["bleu"].value, arm.seeds) == (21.0, [1, 3])


@pytest.mark.parametrize("diverged", ["", "NA", "nan", "None", "0.0", "False"])
def test_what_a_table_says_of_numbers_that_were_not_measured_excludes_no_run(diverged: str, foreign: Path) -> None:
    foreign.write_text(
        f"arm,seed,loss,acc,diverged\na,1,2.0,NaN,{diverged}\na,2,2.2,90,{diverged}\na,3,2.4,NA,{diverged}\n"
    )
    metrics = [Metric("loss", "loss", "loss", better="lower"), Metric("acc", "acc", "acc")]
    [arm] = results_of_csv(foreign, metrics=metrics).compare().arms
    assert (arm.means["loss"].value, arm.seeds) == (pytest.approx(2.2), [1, 2, 3])


@pytest.mark.parametrize("column", ["test_pairs", "test_sentences", "test_paper_bleu", "steps", "seconds"])
@pytest.mark.parametrize("value", ["nan", "inf"])
def test_a_number_beside_the_metrics_that_was_not_measured_excludes_no_run(
    column: str, value: str, foreign: Path
) -> None:
    foreign.write_text(f"arm,seed,test_perplexity,{column}\na,1,10,{value}\na,2,11,{value}\na,3,12,{value}\n")
    made = make_report(results_of_csv(foreign))
    assert made.compared.baseline.seeds == [1, 2, 3]
    assert "diverged" not in made.markdown()


def test_a_file_that_is_called_as_a_study_is_is_not_of_that_study(foreign: Path) -> None:
    text = foreign.read_text()
    Path("gpt.csv").write_text(text)
    loss = [Metric("loss", "test_loss", "loss", better="lower")]
    assert [arm.arm for arm in results_of_csv("gpt.csv", metrics=loss).compare().arms] == ["small", "large"]


def test_the_metrics_and_arms_of_a_study_read_a_csv_too(foreign: Path, runs_dir: Path) -> None:
    foreign.write_text("arm,seed,test_perplexity,model.heads\nbase,1,3.0,8\nA1,1,4.0,1\nZ,1,1.0,1\n")
    found = results_of_csv(foreign, "heads")
    assert found.compare().arms[1].against
    assert found.notes == ["Left out: the arm Z, which the study does not have."]
    assert make_report(found).rows.rows[1].texts[:2] == ["A1", "1"]


def test_columns_named_like_config_keys_tell_settings_apart(foreign: Path) -> None:
    foreign.write_text("arm,seed,data,loss,note\na,1,x,2,p\nb,1,x,3,q\na,1,y,4,r\n")
    metric = ["--metric", "loss:lower", "--baseline", "a"]
    report_command(["--from", "theirs.csv", *metric, "--markdown", "x.md"])
    assert "Left out: 1 run of another setting: say data=y to see them." in Path("x.md").read_text()
    report_command(["data=y", "--from", "theirs.csv", *metric, "--markdown", "y.md"])
    assert "| a | 4.000 |" in Path("y.md").read_text()


@pytest.mark.parametrize(
    ("content", "words", "sentence"),
    [
        (None, "", "theirs.csv cannot be read: No such file"),
        ("", "", "theirs.csv has no rows below its header"),
        ("arm,seed,loss\n", "", "theirs.csv has no rows below its header"),
        ("run,seed,model.heads,loss\na,1,4,2\n", "", "theirs.csv, line 1: there is no column 'arm'"),
        ("arm,sed,loss\na,1,2\n", "", "theirs.csv, line 1: there is no column 'seed'; did you mean sed"),
        ("arm,seed,loss,loss\na,1,2,3\n", "", "theirs.csv, line 1: the column 'loss' is there twice"),
        ("arm,seed,lss\na,1,2\n", "", "theirs.csv, line 1: there is no column of a metric; there should be .* loss:"),
        ("arm,seed,loss\na,1,2\na,2,x\n", "", "theirs.csv, line 3: loss is 'x', which is not a number"),
        ("arm,seed,loss\na,one,2\n", "", "theirs.csv, line 2: seed is 'one', which is not a whole number"),
        ("arm,seed,loss\na,1,\n", "", "theirs.csv, line 2: no number of loss: give one"),
        ("arm,seed,loss\n,1,2\n", "", "theirs.csv, line 2: arm is empty"),
        ("arm,seed,loss\na,1,2,3\n", "", "theirs.csv, line 2: 4 cells, where line 1 names 3 columns"),
        ("arm,seed,loss\na,1,2\na,1,3\n", "", "theirs.csv, lines 2 and 3: a has seed 1 twice in one setting"),
        ("arm,seed,loss\na,1,2\n", "--baseline b", "theirs.csv: it has no arm 'b'; choose one of a|did you mean a"),
        ("arm,seed,loss\na,1,2\n", "--metric loss:down", "--metric loss:down: say the column and what is better"),
        ("arm,seed,loss\na,1,2\n", "--wandb me/x", "--wandb draws the runs of runs_dir: leave out --from"),
        ("arm,seed,loss\na,1,2\n", "scale=small", "scale=small: the runs know no scale"),
    ],
)
def test_a_csv_that_cannot_be_read_is_one_sentence_with_file_and_line(
    content: str | None, words: str, sentence: str, foreign: Path
) -> None:
    foreign.unlink() if content is None else foreign.write_text(content)
    with pytest.raises(UserError, match=sentence):
        report_command(["mine", "--from", "theirs.csv", "--baseline", "a", "--metric", "loss:lower", *words.split()])


def test_a_csv_of_etudes_that_another_program_saved_again_is_read(runs_dir: Path, make_run: Make) -> None:
    make_run("base", 1, ppl=2.0)
    make_run("A1", 1, version=None)
    table = frame.frame(load_study("heads"), read_rows(runs_dir / "heads")[0])
    table.to_csv("runs.csv", index=False, na_rep="NaN")
    assert [run.score("test.perplexity") for run in results_of_csv("runs.csv", "heads").runs] == [2.0, 3.0]


def test_a_column_named_as_a_callback_is_holds_what_it_likes(foreign: Path) -> None:
    foreign.write_text("arm,seed,callbacks.x,loss\na,1,3,2.0\nb,1,4,2.0\n")
    loss = [Metric("loss", "loss", "loss", better="lower")]
    assert len(results_of_csv(foreign, metrics=loss).compare().arms) == 2


def test_without_a_study_the_first_arm_is_the_baseline(foreign: Path) -> None:
    report_command(["--from", "theirs.csv", "--metric", "test_loss:lower", "--markdown", "t.md"])
    assert "| large | 3.110 ± 0.025 | **−0.200**\\* | 3 |" in Path("t.md").read_text()
    results_command(["--from", "theirs.csv", "--metric", "test_loss:lower", "--csv", "ours.csv"])
    assert pd.read_csv("ours.csv").test_loss.to_list() == pd.read_csv("theirs.csv").test_loss.to_list()


@pytest.mark.parametrize("command", [report_command, results_command])
def test_metrics_are_named_of_a_file_of_them_alone(command):
    with pytest.raises(UserError, match="--metric is for the columns of a CSV"):
        command(["table3", "--metric", "loss:lower"])
