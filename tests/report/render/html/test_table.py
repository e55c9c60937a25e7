import re
from pathlib import Path

import pytest

from etude.report import results_of_csv
from etude.report.notes import Note
from etude.report.render.html.table import notes, setting, table
from etude.report.render.rows import Cell, Column, Row, Rows
from etude.study.metrics import Metric

COLUMNS = [
    Column("arm", words=True),
    Column("d_model", about_arm=True),
    Column("positions", about_arm=True, words=True),
    Column("PPL", "ours"),
    Column("PPL", "Δ", starred=True),
    Column("PPL", "paper"),
]
ROWS = Rows(
    "made-up",
    "Made up",
    COLUMNS,
    [
        Row(
            "base",
            [Cell("base"), Cell(100_000), Cell("sinusoidal"), Cell(1234.5, 2, 0.02), Cell(), Cell(4.92, 2)],
            True,
        ),
        Row(
            "A",
            [
                Cell("A1", marks="²"),
                Cell(100_000, blank=True),
                Cell("<i>learned</i>"),
                Cell(2.0, 2),
                Cell(-0.5, 2, sign=True, star=True),
                Cell(),
            ],
            True,
        ),
        Row("A", [Cell("A2"), Cell(), Cell(), Cell("not run"), Cell(), Cell(5.0, 2)], False),
        Row("B", [Cell("B"), Cell(100_000, blank=True), Cell("*.bias*"), Cell(2.0, 2), Cell(), Cell()], True),
    ],
)


def rows() -> list[list[tuple[str, str | None]]]:
    """Of each row: (text, what it is sorted by)."""
    body = table(ROWS).split("<tbody>")[1]
    found = []
    for row in re.findall(r"<tr.*?</tr>", body, re.DOTALL):
        cells = re.findall(r"<(t[hd])([^>]*)>(.*?)</\1>", row)
        found.append(
            [(text, (re.search(r'data-value="([^"]*)"', given) or [None, None])[1]) for _, given, text in cells]
        )
    return found


def test_seeds_that_diverged_are_seeds_of_the_setting(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("arm,seed,loss\nbase,1,nan\nx,2,inf\n")
    metric = Metric("loss", "loss", "loss", better="lower")
    assert setting(results_of_csv(tmp_path / "t.csv", metrics=[metric]).compare()) == "seeds 1, 2"


def test_numbers_sort_as_numbers() -> None:
    base, first, _, last = rows()
    assert [value for _, value in base] == ["base", "100000", "sinusoidal", "1234.5", None, "4.92"]
    assert first[4] == ("<b>−0.50*</b>", "-0.5")
    assert last[2] == ("*.bias*", "*.bias*"), "no star"


@pytest.mark.parametrize(
    ("cell", "value"),
    [
        (Cell(1e-5), 1e-5),
        (Cell(1e6), 1e6),
        (Cell(-1), -1),
        (Cell(0.5, 1, sign=True), 0.5),
        (Cell("–"), None),
        (Cell("40 / 100", order=40), 40),
    ],
)
def test_a_number_sorts_however_it_is_written(cell: Cell, value: float | None) -> None:
    columns = [Column("arm", words=True), Column("rate")]
    found = re.search(
        r'<td data-value="([^"]*)"', table(Rows("made-up", "Made up", columns, [Row("A", [Cell("A1"), cell], True)]))
    )
    assert (float(found[1]) if found else None) == value


def test_a_blank_cell_sorts_as_the_baseline_whose_value_it_has() -> None:
    assert rows()[1][1] == ("", "100000")


@pytest.mark.parametrize("cell", [1, 2, 3, 4])
def test_what_was_not_run_sorts_last(cell: int) -> None:
    assert rows()[2][cell][1] is None


def test_text_is_escaped_and_symbols_are_set_as_symbols() -> None:
    assert rows()[1][2][0] == "&lt;i&gt;learned&lt;/i&gt;"
    assert "<i>d</i><sub>model</sub>" in table(ROWS)


@pytest.mark.parametrize("header", ["exact_match", "warmup_steps", "bits_per_byte"])
def test_a_word_with_an_underscore_is_no_symbol(header: str) -> None:
    assert f">{header}</button>" in table(Rows("made-up", "Made up", [Column("arm", words=True), Column(header)]))


def test_rules_separate_the_groups() -> None:
    assert [("begins" in row) for row in re.findall(r"<tr[^>]*>", table(ROWS).split("<tbody>")[1])] == [
        True,
        True,
        False,
        True,
    ]


@pytest.mark.parametrize("starred", [True, False])
def test_two_lines_stand_below_the_table_and_a_command_with_them_and_the_rest_is_folded(starred: bool) -> None:
    row = Row("A", [Cell("A1"), Cell(2.0, 2, 0.1, star=starred)] if starred else [Cell("A1")], True)
    told = [
        *[Note("±: at length")] * starred,
        Note("one"),
        Note("First by PPL:"),
        Note("etude <train>", is_command=True),
        Note("four"),
        Note("five"),
    ]
    shown, folded = notes(Rows("made-up", "Made up", COLUMNS[:2], [row], told)).split("<summary>")
    assert ("p &lt; 0.05" in shown) == starred
    assert all(word in shown for word in ("one", "First by PPL:", "<code>etude &lt;train&gt;</code>"))
    assert f"{2 + starred} more notes" in folded
    assert "five" in folded
    assert "four" not in shown
    assert "details" not in notes(Rows("made-up", "Made up", COLUMNS[:2], [row], told[starred : starred + 1]))
