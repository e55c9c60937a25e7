"""What a paper reads with `\\input`."""

import math
import re
import shutil
import subprocess
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from unicodedata import normalize

import pytest
from hypothesis import given
from hypothesis import strategies as st

from etude.report import report
from etude.report.notes import Note
from etude.report.render.latex import escape_latex, latex
from etude.report.render.rows import Cell, Column, Row, Rows
from etude.store.run_dir import RunDir

Make = Callable[..., RunDir]

NEEDED = ("pdflatex", "pdftotext")
DOCUMENT = r"""\documentclass{article}
\usepackage{booktabs,graphicx}
\begin{document}
\input{table}
\end{document}
"""
compiles = pytest.mark.skipif(
    any(shutil.which(program) is None for program in NEEDED), reason=f"needs {' and '.join(NEEDED)}"
)


def row(group: str, *words: str) -> Row:
    """A row of cells that are words."""
    return Row(group, [*map(Cell, words)], run=True)


def body(text: str) -> list[list[str]]:
    """The cells of the rows of the table, header included, as they are written."""
    tabular = text.partition(r"\begin{tabular}")[2].partition(r"\end{tabular}")[0]
    lines = [line.removesuffix(r" \\") for line in tabular.splitlines() if line.endswith(r"\\")]
    return [[cell.strip() for cell in re.split(r"(?<!\\)&", line)] for line in lines]


def several_seeds(make_run: Make) -> None:
    for seed in (1, 2, 3):
        make_run("base", seed, ppl=3.0 + 0.01 * seed, bleu=40.0 + seed)
        make_run("A1", seed, ppl=4.0 + 0.01 * seed, bleu=39.0 + seed, tokens=100)
    make_run("A2", bleu=38.0)
    make_run("long", bleu=41.0)


def printed(folder: Path, text: str) -> str:
    """What stands on the page."""
    (folder / "table.tex").write_text(text, encoding="utf-8")
    (folder / "paper.tex").write_text(DOCUMENT, encoding="utf-8")
    tex = ["pdflatex", "-interaction=nonstopmode", "-halt-on-error", "-no-shell-escape", "paper.tex"]
    done = subprocess.run(tex, cwd=folder, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stdout[-2000:]
    assert "Overfull" not in done.stdout
    show = ["pdftotext", "-layout", "paper.pdf", "-"]
    return subprocess.run(show, cwd=folder, capture_output=True, text=True, check=True).stdout


@given(st.text(st.sampled_from("&%$#_{}~^\\ab1 ")))
def test_no_character_that_tex_acts_on_is_left(text: str) -> None:
    told = escape_latex(text)
    for command in (r"\textbackslash{}", r"\textasciitilde{}", r"\textasciicircum{}"):
        told = told.replace(command, "")
    assert not re.search(r"(?<!\\)[&%$#_{}~^]|\\(?![&%$#_{}])", told)


def test_the_rows_are_those_of_the_report_with_their_groups_as_in_the_paper(runs_dir: Path, make_run: Make) -> None:
    several_seeds(make_run)
    made = report("heads", runs_dir, {})
    metrics, header, *rows = body(latex(made.rows))
    assert [cell for cell in metrics if cell] == [
        r"\multicolumn{2}{c}{PPL}",
        r"\multicolumn{2}{c}{$\Delta$ ln PPL}",
        r"\multicolumn{3}{c}{BLEU}",
        r"\multicolumn{2}{c}{params $\times$10$^{6}$}",
    ]
    assert {len(row) for row in (header, *rows)} == {1 + len(made.rows.columns)}
    assert header[:5] == ["", "arm", "$h$", "positions", "steps"]
    assert header[5:12] == ["ours", "paper", "ours", "paper", "ours", r"$\Delta$", "paper"]
    assert [row[0] for row in rows] == ["", "(A)", "", "(E)", ""]
    assert rows[0][2:6] == ["8", "sinusoidal", "100", r"3.02 $\pm$ 0.02"]
    assert rows[1][2:8] == ["1", "", "", r"4.02 $\pm$ 0.02", "5.29", r"\textbf{+0.286}\rlap{$^*$}"]


def test_rules_part_the_groups(runs_dir: Path, make_run: Make) -> None:
    make_run("base")
    lines = report("heads", runs_dir, {}).latex().splitlines()
    body_lines = lines[lines.index(r"\midrule") + 1 : lines.index(r"\bottomrule")]
    names = ["rule" if line == r"\midrule" else line.split(" & ")[1] for line in body_lines]
    assert names == ["base", "rule", "A1", "A2", "rule", "E1", "rule", "long"]


def rules_and_names(rows: Rows) -> list[str]:
    """What stands below the header, in order."""
    lines = latex(rows).splitlines()
    inside = lines[lines.index(r"\midrule") + 1 : lines.index(r"\bottomrule")]
    return ["rule" if line == r"\midrule" else line.removesuffix(r" \\").split(" & ")[0] for line in inside]


def test_arms_that_stand_alone_are_not_parted_by_rules() -> None:
    rows = Rows("own", "Mine", [Column("arm", words=True), Column("PPL")])
    arms = (
        ("base", "base"),
        ("rope", "rope"),
        ("size", "size-1"),
        ("size", "size-2"),
        ("rms", "rms"),
        ("last", "last"),
    )
    rows.rows += [row(group, arm, "3.0") for group, arm in arms]
    assert rules_and_names(rows) == ["base", "rope", "rule", "size-1", "size-2", "rule", "rms", "last"]


def test_where_there_is_no_paper_nothing_is_called_ours(runs_dir: Path, make_run: Make) -> None:
    several_seeds(make_run)
    (runs_dir.parent / "experiments" / "heads" / "paper.yaml").unlink()
    made = report("heads", runs_dir, {})
    assert not re.search(r"\bours\b", made.latex() + made.markdown(), re.IGNORECASE)
    metrics, header, *_ = body(made.latex())
    assert [cell for cell in metrics if cell] == [r"\multicolumn{2}{c}{BLEU}"]
    assert header[5:10] == ["PPL", r"$\Delta$ ln PPL", "", r"$\Delta$", r"params $\times$10$^{6}$"]
    assert "an arm's less that of base" in made.markdown()


def test_a_header_of_one_line_has_no_empty_line_above_it() -> None:
    rows = Rows("own", "Mine", [Column("arm", words=True), Column("PPL")], [row("base", "base", "3.0")])
    assert body(latex(rows)) == [["arm", "PPL"], ["base", "3.0"]]


def test_short_notes_explain_the_marks_and_signs_alone_and_none_are_none(runs_dir: Path, make_run: Make) -> None:
    several_seeds(make_run)
    made = report("heads", runs_dir, {})
    full, short, none = (made.latex(notes=notes) for notes in ("full", "short", "none"))
    assert full == made.latex()
    [below] = re.findall(r"\\raggedright\n(.*)\\end\{minipage\}", short, re.DOTALL)
    explained = [note for note in made.rows.sentences if note[0] in "¹²§†¶"]
    assert below.splitlines() == [
        *(rf"{escape_latex(note)}\par" for note in explained),
        r"$\pm$: half the 95 \% interval over seeds.\par",
        r"* p \textless{} 0.05 after Holm's correction for all arms.\par",
    ]
    assert explained
    assert "minipage" not in none
    assert body(full) == body(short) == body(none)


def test_in_one_column_what_an_arm_is_shares_a_column_and_bleu_stands_below(runs_dir: Path, make_run: Make) -> None:
    several_seeds(make_run)
    text = report("heads", runs_dir, {}).latex(columns=1)
    assert r"\begin{table}" in text
    assert "table*" not in text
    assert r"\textwidth" not in text
    upper, lower = (body(r"\begin{tabular}" + part) for part in text.split(r"\begin{tabular}")[1:])
    assert upper[2][:3] == ["", "base", r"\raggedright h=8, positions=sinusoidal, steps=100"]
    assert [row[1] for row in upper[2:]] == [row[1] for row in lower[2:]]
    assert r"\multicolumn{3}{c}{BLEU}" in lower[0]
    assert not any("BLEU" in cell for cell in upper[0])
    assert text.count(r"\caption") == text.count(r"\label") == 1


def test_a_search_fits_one_column_too() -> None:
    rows = Rows("own", "Mine", [Column("rate"), Column("PPL", "validation")], [row("", "1.0", "3.0")])
    assert latex(rows, columns=1).count(r"\begin{tabular}") == 1


def test_a_study_without_letters_has_no_column_for_them() -> None:
    rows = Rows(
        "own",
        "Mine",
        [Column("arm", words=True), Column("PPL", "ours")],
        [row("base", "base", "3.0")],
    )
    assert body(latex(rows))[1:] == [["arm", "ours"], ["base", "3.0"]]


@pytest.mark.parametrize("group", ["%", "λ", "1"])
def test_what_is_no_letter_is_not_set_as_one(group: str) -> None:
    text = latex(Rows("50%_runs", "Mine", [Column("arm", words=True), Column("PPL")], [row(group, "a", "3.0")]))
    assert body(text)[1:] == [["a", "3.0"]]
    assert r"\label{tab:50-_runs}" in text


def test_what_was_left_out_is_a_comment_and_the_notes_are_printed(runs_dir: Path, make_run: Make) -> None:
    make_run("base")
    make_run("base", scale="small")
    make_run("A1", scale="small")
    text = report("heads", runs_dir, {}).latex()
    assert "\n% Left out: 1 run of another setting: say budget=pocket scale=pocket to see them.\n" in text
    assert r"sacreBLEU: nrefs:1\textbar{}tok:13a\par" in text


def test_what_diverged_or_is_not_compared_is_printed_and_no_comment(runs_dir: Path, make_run: Make) -> None:
    several_seeds(make_run)
    make_run("A1", 4, ppl=math.inf)
    make_run("E1", signature="nrefs:1|tok:char")
    lines = report("heads", runs_dir, {}).latex().splitlines()
    printed_notes = lines[lines.index(r"\begin{minipage}{\textwidth}\footnotesize\raggedright") :]
    assert r"A1, seed 4, diverged (the test perplexity is inf): it enters no mean.\par" in printed_notes
    [refused] = [line for line in printed_notes if line.startswith("Not compared: E1: its sacreBLEU signature is")]
    assert refused.endswith(r"\par")
    [arm] = [row for row in body("\n".join(lines)) if row[1].startswith("A1")]
    assert arm[-1] == "3 of 4"


@pytest.mark.parametrize("columns", [1, 2])
def test_environments_and_braces_close_in_order(columns: int, runs_dir: Path, make_run: Make) -> None:
    several_seeds(make_run)
    text = report("heads", runs_dir, {}).latex(columns=columns)
    depth = 0
    for before, char in pairwise(text):
        depth += (char == "{") - (char == "}") if before != "\\" else 0
        assert depth >= 0
    assert depth == 0
    opened: list[str] = []
    for command, name in re.findall(r"\\(begin|end)\{(\w+\*?)\}", text):
        if command == "begin":
            opened.append(name)
        else:
            assert opened.pop() == name
    assert not opened


@compiles
def test_it_compiles_and_the_page_holds_every_number(tmp_path: Path, runs_dir: Path, make_run: Make) -> None:
    several_seeds(make_run)
    made = report("heads", runs_dir, {})
    page = printed(tmp_path, made.latex())
    for word in ("3.02 ± 0.02", "+0.286∗", "4.92", "0.526", "sinusoidal", "(A)", "Heads and positions"):
        assert word in page


@compiles
def test_one_column_compiles(tmp_path: Path, runs_dir: Path, make_run: Make) -> None:
    several_seeds(make_run)
    page = printed(tmp_path, report("heads", runs_dir, {}).latex(notes="short", columns=1))
    for word in ("3.02 ± 0.02", "4.92", "0.526", "(A)"):
        assert word in page


@compiles
def test_every_character_that_is_escaped_compiles(tmp_path: Path) -> None:
    every = "&%$#_{}~^\\|<> ±×−–§†¶¹²³αβγδεηλρστΔ äöüßé"
    every += "ζθικμνξπυφχψωΓΘΛΞΠΣΥΦΨΩ≤≥≈≠→←∞√·[]"
    rows = Rows("own", every, [Column("arm", words=True), Column("ε_αls"), Column("PPL", "ours", starred=True)])
    rows.rows.append(Row("base", [Cell(every), Cell(f"{every}*"), Cell(3.0, 1, star=True)], True))
    rows.notes.append(Note(every))
    rows.left_out.append(every)
    page = normalize("NFC", "".join(printed(tmp_path, latex(rows)).split()))
    assert "&%$#{}˜ˆ\\|<>±×−–§†¶123αβγδ" in page, "an underscore is drawn, not set"
    assert "äöüßé" in page


@compiles
@pytest.mark.parametrize("columns", [1, 2])
def test_a_row_that_begins_with_a_list_compiles(columns: int, tmp_path: Path) -> None:
    rows = Rows("own", "Mine", [Column("optimizer.betas", words=True), Column("PPL")])
    rows.rows += [
        row("", "[0.9,0.98]", "3.0"),
        row("", "[0.9,0.999]", "4.0"),
    ]
    page = printed(tmp_path, latex(rows, columns=columns))
    assert "[0.9,0.98]" in page
    assert "[0.9,0.999]" in page


@pytest.mark.parametrize("arms", [60, 61])
def test_a_table_longer_than_a_page_and_letters_that_pdflatex_lacks_are_told_of(arms: int) -> None:
    text = latex(Rows("own", "我的", [Column("arm", words=True)], [row("", "base")] * arms))
    assert ("% Its 61 rows do not fit one page" in text) == (arms == 61)
    assert "such as Chinese ones, need lualatex or xelatex" in text.partition(r"\begin")[0]
