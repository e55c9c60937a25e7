"""`etude init` writes a folder to begin with, and overwrites nothing."""

from pathlib import Path

import pytest

from etude.paths import shipped

from .conftest import status

FILES = {file.relative_to(shipped("template")) for file in shipped("template").rglob("*") if file.suffix != ".pyc"}
FILES = {file for file in FILES if (shipped("template") / file).is_file()}


def test_what_is_written_is_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert status("init", str(tmp_path / "a" / "b")) == 0
    assert {file.relative_to(tmp_path / "a/b") for file in tmp_path.rglob("*") if file.is_file()} == FILES
    told = capsys.readouterr().out.splitlines()
    assert {line.split()[1] for line in told if line.startswith("wrote")} == {str(tmp_path / "a/b" / f) for f in FILES}


def test_nothing_that_is_there_is_overwritten(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "README.md").write_text("mine")
    assert status("init", str(tmp_path)) == 0
    assert (tmp_path / "README.md").read_text() == "mine"
    assert f"kept   {tmp_path / 'README.md'}\n" in capsys.readouterr().out
    assert status("init", str(tmp_path)) == 0
    assert "wrote" not in capsys.readouterr().out


@pytest.mark.parametrize(
    "words", [[], [""], ["--force"], ["a", "b"], ["foo=1"], ["taken"], ["taken/below"], ["/proc/mine"]]
)
def test_what_is_no_folder_is_refused(words, tmp_path, monkeypatch, capsys) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "taken").write_text("")
    assert status("init", *words) == 2
    assert len(capsys.readouterr().err.splitlines()) == 1
