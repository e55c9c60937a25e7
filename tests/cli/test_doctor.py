"""`etude doctor` prints a line for each thing, and ends with 2 only where étude cannot work."""

import json
from pathlib import Path

import pytest

from etude.cli import doctor
from etude.config.compose import compose
from etude.errors import UserError
from etude.store.machine import Finding

from .conftest import status


def test_a_whole_machine_is_told_line_by_line(capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    doctor.main(["--json", "found.json"])
    text = capsys.readouterr().out
    told = json.loads((tmp_path / "found.json").read_text())
    assert all(one["about"] in text for one in told["findings"])
    assert not (tmp_path / "runs").exists()


def test_an_empty_variable_is_no_folder(capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("ETUDE_CACHE", "")
    doctor.main([])
    assert f"{Path('~/.cache/etude').expanduser()}: " in capsys.readouterr().out
    assert compose()["cache_dir"] == "~/.cache/etude"


def test_what_is_broken_is_marked_and_ends_with_two(capsys, monkeypatch):
    broken = Finding("numpy", "missing", "pip install numpy", broken=True)
    monkeypatch.setattr(doctor, "look_around", lambda *places: [Finding("Python", "3"), broken])
    assert status("doctor") == 2
    printed = capsys.readouterr()
    assert "✗  numpy" in printed.out
    assert printed.err == "etude: étude cannot work before numpy is fixed, as it says above\n"


def test_a_word_that_says_nothing_is_refused():
    with pytest.raises(UserError, match="doctor does not take"):
        doctor.main(["table3"])


def test_the_version_names_torch(capsys):
    assert status("--version") == 0
    assert ", torch " in capsys.readouterr().out
