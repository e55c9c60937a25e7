"""`etude.results` and `etude.compare`: what a notebook shows is what the report says, and never fills the screen."""

from collections.abc import Callable
from functools import cache
from html import escape
from pathlib import Path

import pytest

import etude
from etude.errors import UserError
from etude.paths import shipped
from etude.report import Report, make_report, results_of_csv


@cache
def recorded(name: str) -> Report:
    return make_report(results_of_csv(shipped("experiments") / name / "record.csv", name))


@pytest.mark.parametrize("name", ["axes", "history", "multi30k", "table3"])  # 69 arms, 6, 1 and 20 with many columns
def test_a_report_of_any_study_fits_a_screen_and_says_what_it_does_not_show(name: str) -> None:
    made = recorded(name)
    text = repr(made)
    assert text.startswith(made.rows.title)
    assert len(text) < 3000
    shown = [row for row in made.rows.rows if f"\n{row.texts[0]}" in text]
    assert shown == made.rows.rows[: len(shown)]
    left = len(made.rows.rows) - len(shown)
    assert (f"Not shown: {left} of {len(made.rows.rows)} arms" in text) == (left > 0)
    assert ("Not shown" in text) == (left > 0 or str(made.rows.paragraphs[-1]).split()[-1] not in text)


def test_a_notebook_shows_a_table_once(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """There, rich displays whatever is printed, though it is to be a text."""
    plain = repr(recorded("history"))
    monkeypatch.setattr("rich.console._is_jupyter", lambda: True)
    monkeypatch.setattr("rich.jupyter.display", lambda *shown: print(shown))
    assert repr(recorded("history")) == plain
    assert capsys.readouterr().out == ""


def test_runs_of_a_study_are_told_in_a_line() -> None:
    found = results_of_csv(shipped("experiments") / "table3" / "record.csv", "table3")
    assert repr(found).startswith("<Results of table3: 60 runs of 20 of 20 arms;")
    assert len(repr(found)) < 200


def test_a_notebook_gets_the_table_of_the_page_and_all_notes() -> None:
    made = recorded("history")
    page = made._repr_html_()
    assert all(f"{row.texts[0]}" in page for row in made.rows.rows)
    assert made.rows.paragraphs
    assert all(f"<p>{escape(str(note))}</p>" in page for note in made.rows.paragraphs)
    assert "<script" not in page


def test_a_frame_of_arms_has_the_numbers_of_the_comparison() -> None:
    made = recorded("table3")
    rows = made.frame().set_index("arm")
    assert [*rows.index] == [arm.arm for arm in made.compared.arms]
    assert {str(rows[column].dtype) for column in rows if column.startswith("bleu")} == {"Float64", "boolean"}
    for arm in made.compared.arms:
        row = rows.loc[arm.arm]
        assert (row["seeds"], row["parameters"]) == (len(arm.runs), arm.costs["parameters"])
        assert row["ppl"] == arm.means["ppl"].value
        if arm.against is None:
            assert row.isna()["ppl_difference"]
        else:
            found = arm.against.differences["ppl"]
            ends = [row["ppl_difference_low"], row["ppl_difference_high"]]
            assert (row["ppl_difference"], *ends) == (found.test.difference, *found.test.interval)
            assert (row["ppl_p"], row["ppl_significant"], row["against"]) == (found.holm, found.star, "base")


@pytest.mark.parametrize("name", ["forest", "cost", "paper"])
def test_a_figure_of_the_page_is_one_of_plotly(name: str) -> None:
    drawn = recorded("table3").figure(name)
    assert {arm for trace in drawn.data for arm in trace.y or ()}
    assert drawn.layout.title.text


@pytest.mark.parametrize(
    ("asked", "told"),
    [
        ({"name": "forrest"}, "history has no 'forrest' to draw; did you mean forest"),
        ({"metric": "blue"}, "history has no 'blue' to draw; did you mean bleu"),
        ({"name": "cost", "over": "money"}, "history has no 'money' to draw; choose one of flops"),
        ({"name": "paper"}, "history has no numbers for the figure 'paper' yet"),
    ],
)
def test_a_figure_that_is_not_there_is_one_sentence(asked: dict[str, str], told: str) -> None:
    with pytest.raises(UserError, match=told):
        recorded("history").figure(**asked)


def test_the_door_is_the_report(
    make_run: Callable[..., object], runs_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for seed in (1, 2):
        make_run("base", seed)
        make_run("A1", seed)
    make_run("E1").path.parent.rename(runs_dir / "heads" / "other")  # type: ignore[attr-defined]
    rows = etude.results("heads")
    assert [*zip(rows["arm"], rows["seed"], strict=True)] == [("base", 1), ("base", 2), ("A1", 1), ("A1", 2)]
    assert ["no arm other" in note for note in rows.attrs["notes"]] == [True]
    assert etude.load(rows.iloc[2]).path == Path(rows["path"][2])
    assert "\\begin{tabular}" in etude.compare("heads").latex()
    assert etude.compare("heads", "A1").compared.baseline.arm == "A1"
    assert "A1" in repr(etude.compare("heads"))
    assert [*etude.results("heads", where={"seed": 2})["seed"]] == [2, 2]
    assert len(etude.results("heads", where={"seed": [1, 2]})) == len(rows)
    monkeypatch.setenv("HOME", str(runs_dir.parent))
    assert len(etude.results("heads", f"~/{runs_dir.name}")) == len(rows)
    (runs_dir.parent / "conf").mkdir()
    shipped_file = (shipped("conf") / "train.yaml").read_text(encoding="utf-8")
    (runs_dir.parent / "conf/train.yaml").write_text(shipped_file.replace("runs_dir: runs", "runs_dir: nowhere"))
    with pytest.raises(UserError, match="there is no folder nowhere"):
        etude.results("heads")
    (runs_dir.parent / "conf/train.yaml").unlink()
    with pytest.raises(UserError, match="where='seed=1': give keys and values"):
        etude.results("heads", where="seed=1")  # type: ignore[arg-type]
    with pytest.raises(UserError, match="did you mean heads"):
        etude.results("head")
    with pytest.raises(UserError, match=r"heads has no arm 'A3'; did you mean A[12] or A[12]"):
        etude.compare("heads", "A3")


def test_a_name_that_the_package_does_not_have_is_an_attribute_error() -> None:
    assert {"load", "results", "compare"} <= {*dir(etude)}
    with pytest.raises(AttributeError, match="module 'etude' has no attribute 'lod'"):
        etude.lod  # type: ignore[attr-defined]  # noqa: B018


def test_a_csv_and_a_sweep_file_are_asked_as_a_study_is(tmp_path: Path) -> None:
    record = str(shipped("experiments") / "modern" / "record.csv")
    made = recorded("modern")
    assert etude.results(record).equals(results_of_csv(record, "modern").frame()), "its column says which study it is"
    assert repr(etude.compare(record)) == repr(made)
    other = tmp_path / "mine.csv"
    other.write_text("arm,seed,test_perplexity\na,1,9.0\nb,1,8.0\n")
    assert [*etude.results(str(other)).arm] == ["a", "b"]
    assert etude.compare(str(other), "b").compared.baseline.arm == "b"
    other.write_text("arm,seed,loss\na,1,9.0\nb,1,8.0\n")
    compared = etude.compare(str(other), metrics=["loss:lower"]).compared
    assert {arm.arm: arm.means["loss"].value for arm in compared.arms} == {"a": 9.0, "b": 8.0}
    assert [*etude.results(str(other), metrics=["loss:lower"]).loss] == [9.0, 8.0]
    with pytest.raises(UserError, match="metrics: loss: say the column and what is better"):
        etude.results(str(other), metrics=["loss"])
    with pytest.raises(UserError, match="they are columns of a CSV"):
        etude.compare("table3", metrics=["loss:lower"])
    sweep = tmp_path / "it's mine.yaml"
    sweep.write_text("method: grid\nparameters:\n  seed: {values: [1, 2]}\n")
    with pytest.raises(UserError, match=r"no run of this sweep is finished.*etude sweep '.*/it'\"'\"'s mine\.yaml'"):
        etude.results(str(sweep), tmp_path)
