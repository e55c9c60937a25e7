from math import isnan
from pathlib import Path

import pytest

from etude.store.metrics_file import read_metrics, to_number

WHOLE = "step,loss,valid_loss\n10,2.5,\n"


@pytest.mark.parametrize("torn", ["2", "20,3", "20,,2.12", "20,1.25,0"])
def test_a_row_that_a_kill_tore_or_that_is_being_written_is_left_out(tmp_path: Path, torn: str) -> None:
    path = tmp_path / "metrics.csv"
    path.write_text(WHOLE + torn)
    assert read_metrics(path) == [{"step": "10", "loss": "2.5", "valid_loss": ""}]
    path.write_text(f"{WHOLE}20,1.25,0.5\n")
    assert [row["step"] for row in read_metrics(path)] == ["10", "20"]


@pytest.mark.parametrize("damaged", ["20,3", "x,3,", ",,", ""])
def test_a_row_without_a_step_or_all_of_its_cells_is_left_out(tmp_path: Path, damaged: str) -> None:
    path = tmp_path / "metrics.csv"
    path.write_text(f"{WHOLE}{damaged}\n")
    assert [row["step"] for row in read_metrics(path)] == ["10"]


def test_a_file_without_a_whole_line_has_no_rows(tmp_path: Path) -> None:
    assert read_metrics(tmp_path / "metrics.csv") == []
    (tmp_path / "metrics.csv").write_text("step,lo")
    assert read_metrics(tmp_path / "metrics.csv") == []


def test_what_is_no_number_is_nan() -> None:
    assert [to_number(text) for text in ("1e-3", "0", "-inf")] == [0.001, 0.0, -float("inf")]
    assert all(isnan(to_number(text)) for text in ("nan", "one", "", None))
