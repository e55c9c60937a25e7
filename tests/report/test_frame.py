"""One row a run, as other tools read it."""

import csv
import io
import json
import re
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from etude.errors import UserError
from etude.report import frame, results
from etude.report.frame import as_csv, as_json, write_parquet
from etude.runs.run_dir import RunDir

Make = Callable[..., RunDir]


def test_there_is_one_row_a_run_in_the_order_of_the_arms_and_seeds(runs_dir: Path, make_run: Make) -> None:
    make_run("E1", 1)
    make_run("base", 2)
    make_run("base", 1)
    make_run("A1", finished=False)
    rows = results("heads", runs_dir).rows
    assert [(row["arm"], row["seed"]) for row in rows] == [("base", 1), ("base", 2), ("E1", 1)]
    assert len({tuple(row) for row in rows}) == 1, "rows have different columns"


def test_a_row_says_what_the_run_is_and_what_it_found(runs_dir: Path, make_run: Make) -> None:
    run = make_run("E1", 3, ppl=2.5, bleu=41.25, tokens=1000)
    (row,) = results("heads", runs_dir).rows
    expected = {
        "study": "heads",
        "arm": "E1",
        "seed": 3,
        "model.heads": 8,
        "model/position": "learned",
        "budget.max_steps": 100,
        "test_perplexity": 2.5,
        "test_bleu": 41.25,
        "test_signature": "nrefs:1|tok:13a",
        "parameters": 526_123,
        "tokens": 1000,
        "flops": None,
        "code": "same",
        "path": str(run.path),
    }
    assert expected.items() <= row.items()


def test_the_columns_are_those_that_the_documentation_names(runs_dir: Path, make_run: Make) -> None:
    make_run("base")
    (row,) = results("heads", runs_dir).rows
    varied = {"model.heads", "model/position", "budget.max_steps"}
    listed = [re.split(r" {3,}", line.strip())[0] for line in (frame.__doc__ or "").splitlines() if line[:4] == "    "]
    documented = {name for line in listed if "<" not in line for name in line.split(", ")}
    assert documented == set(row) - varied


def test_a_filter_selects_and_settings_are_not_mixed(runs_dir: Path, make_run: Make) -> None:
    make_run("base", scale="small")
    make_run("base", scale="pocket")
    make_run("A1", scale="pocket")
    found = results("heads", runs_dir)
    assert [row["arm"] for row in found.rows] == ["base", "A1"]
    assert found.notes == ["Left out: 1 run of another setting: say budget=small scale=small to see them."]
    assert len(results("heads", runs_dir, {"scale": "small"}).rows) == 1


def test_the_rows_are_a_frame_where_pandas_is_installed(
    runs_dir: Path, make_run: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    pandas = pytest.importorskip("pandas", reason="pandas is not installed")
    for seed, bleu in ((1, 10.0), (2, 20.0)):
        make_run("base", seed, bleu=bleu)
    found = results("heads", runs_dir)
    pandas.testing.assert_frame_equal(found.frame(), pandas.DataFrame(found.rows))
    assert found.frame().groupby("arm").test_bleu.mean()["base"] == 15
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(UserError, match=r"frame\(\) needs pandas: pip install pandas, or take \.rows"):
        found.frame()


def test_csv_and_json_give_the_same_numbers_back(runs_dir: Path, make_run: Make) -> None:
    make_run("base", ppl=1 / 3, bleu=200 / 7)
    make_run("A1")
    rows = results("heads", runs_dir).rows
    assert json.loads(as_json(rows)) == rows
    read = list(csv.DictReader(io.StringIO(as_csv(rows))))
    assert [float(row["test_perplexity"]) for row in read] == [1 / 3, 3.0]
    assert [row["arm"] for row in read] == ["base", "A1"]
    assert read[0]["flops"] == ""


def test_json_stays_json_where_a_run_diverged(runs_dir: Path, make_run: Make) -> None:
    make_run("base", ppl=float("inf"))
    text = as_json(results("heads", runs_dir).rows)
    assert json.loads(text, parse_constant=lambda name: pytest.fail(f"{name} is no JSON"))[0]["test_perplexity"] is None


def test_parquet_gives_the_same_rows_back(runs_dir: Path, make_run: Make) -> None:
    parquet = pytest.importorskip("pyarrow.parquet", reason="pyarrow is not installed")
    make_run("base", tokens=1000)
    make_run("A1", ppl=2.0)
    rows = results("heads", runs_dir).rows
    write_parquet(rows, runs_dir.parent / "runs.parquet")
    assert parquet.read_table(runs_dir.parent / "runs.parquet").to_pylist() == rows


def test_a_column_of_numbers_and_words_is_one_of_words_in_parquet(tmp_path: Path) -> None:
    parquet = pytest.importorskip("pyarrow.parquet", reason="pyarrow is not installed")
    write_parquet([{"a": 1, "b": 1}, {"a": "auto", "b": 0.5}, {"a": None, "b": None}], tmp_path / "runs.parquet")
    table = parquet.read_table(tmp_path / "runs.parquet").to_pydict()
    assert table == {"a": ["1", "auto", None], "b": [1.0, 0.5, None]}


def test_without_pyarrow_there_is_a_way_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(UserError, match="--parquet needs pyarrow: pip install pyarrow, or write --csv"):
        write_parquet([{"a": 1}], tmp_path / "runs.parquet")
