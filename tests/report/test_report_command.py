import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from xml.etree import ElementTree

import pytest

from etude.cli.report import main as report
from etude.errors import UserError
from etude.store.run_dir import RunDir

Make = Callable[..., RunDir]


def test_it_reads_runs_where_the_config_says_unless_told_otherwise(
    runs_dir: Path, make_run: Make, capsys: pytest.CaptureFixture[str]
) -> None:
    make_run("base", bleu=43.21)
    report(["heads"])
    assert "43.2" in capsys.readouterr().out
    runs_dir.rename(runs_dir.with_name("elsewhere"))
    report(["heads", "runs_dir=elsewhere", "scale=pocket"])
    assert "43.2" in capsys.readouterr().out


def test_what_goes_into_a_pipe_has_all_the_columns(
    make_run: Make, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("COLUMNS", raising=False)
    make_run("base")
    report(["heads"])
    assert "h=8" not in capsys.readouterr().out


@pytest.mark.parametrize("words", [["--markdown", "out.md"], ["--markdown=out.md"]])
def test_markdown_goes_to_a_file(
    words: list[str], runs_dir: Path, make_run: Make, capsys: pytest.CaptureFixture[str]
) -> None:
    make_run("base")
    report(["heads", *words])
    assert (runs_dir.parent / "out.md").read_text().startswith("**Heads and positions**\n\n| arm | h |")
    assert capsys.readouterr().out == ""


@pytest.mark.parametrize(
    ("option", "begins"),
    [
        ("--markdown", "**Heads and positions**"),
        ("--latex", "% Written by étude"),
        ("--svg", "<svg"),
        ("--html", "<!doctype html>"),
    ],
)
def test_a_dash_is_standard_output(
    option: str, begins: str, runs_dir: Path, make_run: Make, capsys: pytest.CaptureFixture[str]
) -> None:
    make_run("base")
    before = {*runs_dir.parent.iterdir()}
    report(["heads", option, "-"])
    assert capsys.readouterr().out.lower().startswith(begins.lower())
    assert {*runs_dir.parent.iterdir()} == before, "no file of that name"


def test_a_table_for_a_paper_may_be_narrow_and_without_notes(
    make_run: Make, capsys: pytest.CaptureFixture[str]
) -> None:
    make_run("base")
    report(["heads", "--latex", "-", "--latex-columns=1", "--latex-notes=none"])
    printed = capsys.readouterr().out
    assert r"\begin{table}" in printed
    assert "minipage" not in printed


def test_any_arm_may_be_held_up_as_the_baseline(
    make_run: Make, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    make_run("base", ppl=2.0)
    make_run("A1", ppl=3.0)
    report(["heads", "--baseline", "A1"])
    assert "ours less that of A1, in nats" in (shown := capsys.readouterr().out)
    assert "−0.405" in shown
    with pytest.raises(UserError, match="heads has no arm 'A3'"):
        report(["heads", "--baseline=A3"])
    with pytest.raises(UserError, match="--baseline needs ARM: compare the other arms"):
        report(["heads", "--baseline"])


def test_help_names_the_studies(runs_dir: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        report(["--help"])
    studies = capsys.readouterr().out.partition("Studies: ")[2].strip().split(", ")
    assert {"heads", "table3"} <= set(studies)


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["heads", "--latex-notes"], "--latex-notes needs N: the notes below it: none, short .* or full, the default"),
        (["heads", "--latex=t.tex", "--latex-notes=long"], "--latex-notes=long: choose one of full, short, none"),
        (["heads", "--latex=t.tex", "--latex-columns=3"], "--latex-columns=3: choose one of 1, 2"),
        (["heads", "--latex-columns=1"], "--latex-columns is for a table in LaTeX: say --latex FILE, too"),
    ],
)
def test_words_it_does_not_understand_are_told(words: list[str], told: str, runs_dir: Path) -> None:
    with pytest.raises(UserError, match=told):
        report(words)


def test_a_picture_shows_what_the_terminal_would(
    runs_dir: Path, make_run: Make, capsys: pytest.CaptureFixture[str]
) -> None:
    make_run("base")
    report(["heads", "--svg", "out.svg"])
    picture = ElementTree.fromstring((runs_dir.parent / "out.svg").read_text())
    assert picture.tag.endswith("svg")
    assert "base" in "".join(picture.itertext())
    assert "http" not in (runs_dir.parent / "out.svg").read_text().replace("http://www.w3.org/2000/svg", "").replace(
        "https://www.textualize.io", ""
    ), "it asks another server for something"
    assert capsys.readouterr().out == ""


def test_a_picture_is_as_wide_as_its_numbers_need(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("t.csv").write_text(f"arm,seed,loss\nbase,1,2.625\n{'x' * 130},1,3.188\n")
    report(["--from", "t.csv", "--metric", "loss:lower", "--svg", "t.svg"])
    shown = "".join(ElementTree.fromstring(Path("t.svg").read_text()).itertext())
    assert "2.625" in shown
    assert "3.188" in shown


def test_a_page_says_what_was_typed_to_make_it(make_run: Make, tmp_path: Path) -> None:
    make_run("base", ppl=2.0)
    make_run("A1", ppl=3.0)
    report(["heads", "scale=pocket", "--baseline", "A1", "--html", str(tmp_path / "page.html")])
    typed = "etude report heads scale=pocket --baseline A1 --html page.html"  # whoever gets it has other folders
    assert f"Made by <code>{typed}</code>" in (tmp_path / "page.html").read_text(encoding="utf-8")


def test_a_report_imports_neither_torch_nor_hydra_and_wandb_only_where_it_is_asked_for(
    runs_dir: Path, make_run: Make
) -> None:
    make_run("base")
    lines = (
        "import sys, etude.cli.report",
        "assert not {'torch', 'hydra', 'omegaconf'} & {*sys.modules}",
        "repr(etude.compare('heads')); etude.results('heads')",
        "assert 'torch' not in sys.modules",
        "from etude.report.render.wandb import fetch, publish",
        "etude.cli.report.main(['heads'])",
        "assert not {'wandb', 'wandb_workspaces', 'torch'} & {*sys.modules}",
    )
    subprocess.run([sys.executable, "-c", "\n".join(lines)], check=True, cwd=runs_dir.parent)
