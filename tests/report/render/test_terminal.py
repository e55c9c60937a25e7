"""The table in a terminal, where it is narrow."""

import re

import pytest
from tests.report.conftest import printed

from etude.report.notes import Note
from etude.report.render.rows import Cell, Column, Row, Rows
from etude.report.render.terminal import RenderedTable, markdown


def row(group: str, *words: str) -> Row:
    """A row of cells that are words."""
    return Row(group, [*map(Cell, words)], run=True)


@pytest.mark.parametrize("width", [40, 80])
def test_a_table_without_bleu_is_in_one_piece(width: int) -> None:
    columns = [Column("rate", words=True), Column("PPL", "validation"), Column("PPL", "test")]
    rows = Rows("own", "Mine", columns, [row("", "0.001", "3.00 ± 0.25", "4.00 ± 0.25")])
    assert printed(RenderedTable(rows), width).count("rate") == 1


@pytest.mark.parametrize("width", [10, 40, 58, 64, 80, 100, 120])
def test_no_column_is_left_out_however_narrow_the_terminal(width: int) -> None:
    columns = [
        Column("arm", words=True),
        Column("h", about_arm=True),
        Column("d_model", about_arm=True),
        *(Column("PPL", whose) for whose in ("ours", "paper")),
        *(Column("Δ ln PPL", whose, starred=True) for whose in ("ours", "paper")),
        *(Column("BLEU", whose, breaks=whose == "ours") for whose in ("ours", "Δ", "paper")),
    ]
    cells = ["position-sinusoidal", "16", "1024", "206.41 ± 4.85", "4.92", "−0.123*", "−0.456"]
    cells += ["41.25 ± 0.57", "+1.7", "25.8"]
    text = printed(RenderedTable(Rows("own", "Mine", columns, [row("", *cells)])), width)
    assert [cell for cell in cells if cell not in text] == []


@pytest.mark.parametrize(
    ("name", "written"),
    [
        ("d_model", "d_model"),
        ("_private_", r"\_private\_"),
        ("__init__", r"\_\_init\_\_"),
        ("a*b*", r"a\*b\*"),
        ("<b>x</b>", r"\<b>x\</b>"),
        ("3 ± <0.01", "3 ± <0.01"),
        ("`x`|y", r"\`x\`\|y"),
        (r"C:\_x", r"C:\\\_x"),
    ],
)
def test_a_name_that_looks_like_markdown_stays_text(name: str, written: str) -> None:
    columns = [Column("arm", words=True), Column("Δ", starred=True)]
    made = [Row("", [Cell(name), Cell(0.1, 1, sign=True, star=True)], True)]
    lines = markdown(Rows("own", "a *b*", columns, made, [Note(name)])).splitlines()
    assert (lines[0], lines[4]) == (r"**a \*b\***", f"| {written} | **+0.1**\\* |")
    assert lines[6] == re.sub(r"\\([|`])", r"\1", written), "a bar or code in a note is none of a table"
