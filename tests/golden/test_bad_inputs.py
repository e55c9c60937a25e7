"""What people get wrong: each command is refused in one sentence that names the key, and no run comes of it."""

import csv
import shlex
import shutil
import sys
from pathlib import Path

import pytest

from etude.cli.main import main

HERE = Path(__file__).parent
with (HERE / "bad_inputs.tsv").open(encoding="utf-8", newline="") as file:
    CASES = [tuple(row) for row in csv.reader(file, delimiter="\t", quoting=csv.QUOTE_NONE)]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of the user's folder, where one stands."""
    folder = tmp_path / "folder"
    shutil.copytree(HERE / "folder", folder)
    (folder / "runs").mkdir()
    monkeypatch.chdir(folder)
    monkeypatch.setenv("ETUDE_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(sys, "path", [*sys.path])
    return folder


@pytest.mark.slow
@pytest.mark.parametrize(("command", "status", "key"), CASES, ids=[command for command, *_ in CASES])
def test_a_mistake_is_refused_in_one_sentence_that_names_it(
    command: str, status: str, key: str, folder: Path, capsys: pytest.CaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    words = shlex.split(command)
    monkeypatch.setattr(sys, "argv", ["etude", *words])
    with pytest.raises(SystemExit) as end:
        main(words)
    error = capsys.readouterr().err
    assert str(end.value.code) == status, error
    sentence = error.rstrip("\n").splitlines()[-1]
    assert sentence.startswith("etude: ")
    assert key in sentence
    assert "Traceback" not in error
    assert not [*(folder / "runs").rglob("result.json")]
