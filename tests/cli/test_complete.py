"""What the tab key offers, asked as the shells ask."""

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from etude.study.study import study_names

from .conftest import status

PAGE = (Path(__file__).parents[2] / "docs" / "first-hour.md").read_text(encoding="utf-8")
LINES = re.findall(r"^\| (\w+) \| `~.*?` \| `(.*)` \|$", PAGE, re.MULTILINE)
INSTALL = {shell: line.replace(r"\|", "|") for shell, line in LINES}
ETUDE = f'#!/bin/sh\nexec {sys.executable} -m etude "$@"\n'


@pytest.fixture
def offered(tmp_path, monkeypatch, capsys) -> Callable[[str], list[str]]:
    """The candidates for a line, and nothing on standard error."""
    monkeypatch.chdir(tmp_path)

    def ask(line: str) -> list[str]:
        monkeypatch.setenv("COMP_LINE", line)
        monkeypatch.setenv("COMP_POINT", str(len(line)))
        assert status("-sc", "query=bash") == 0
        told = capsys.readouterr()
        assert told.err == ""
        return told.out.split()

    return ask


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("etude tr", ["train", "translate"]),
        ("etude train model/pos", ["model/position="]),
        ("etude train model/position=le", ["model/position=learned", "model/position=learned_unscaled"]),
        ("etude train model.d_f", ["model.d_ff="]),
        ("etude evaluate decoding=g", ["decoding=greedy"]),
        ("etude sweep lear", ["learning_rate"]),
        ("etude sweep table3 logger=w", ["logger=wandb"]),
        ("etude show table3/B", ["table3/B1", "table3/B2"]),
        ("etude diff table3/base table3/B", ["table3/B1", "table3/B2"]),
        ("etude status table3 run", ["runs_dir="]),
        ("etude results table3 --p", ["--parquet"]),
        ("etude train mistake model/pos", []),
        ("etude mistake model/pos", []),
    ],
)
def test_the_tab_key_completes_verbs_studies_arms_groups_keys_and_options(line, expected, offered):
    assert offered(line) == expected


@pytest.mark.parametrize("verb", ["status", "report", "results", "clean", "sweep", "plan"])
def test_a_verb_that_takes_a_study_is_offered_the_studies_the_user_s_own_too(verb, tmp_path, offered):
    (tmp_path / "experiments" / "mine").mkdir(parents=True)
    (tmp_path / "experiments" / "mine" / "study.yaml").touch()
    found = offered(f"etude {verb} ")
    assert {*study_names(), "mine"} <= {*found}
    if verb in ("status", "clean"):
        assert "model/" not in found, "they take no override"


def test_what_stands_behind_the_cursor_is_not_asked_for(tmp_path):
    variables = {"COMP_LINE": "etude train model/position=le model.heads=2", "COMP_POINT": "29"}
    done = subprocess.run(
        [sys.executable, "-m", "etude", "-sc", "query=bash"],
        cwd=tmp_path,
        env=os.environ | variables,
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    assert done.stderr == ""
    assert done.stdout.split() == ["model/position=learned", "model/position=learned_unscaled"]


ASK = {  # what the shell does when the key is pressed behind `etude status tab`
    "bash": 'COMP_LINE="etude status tab" COMP_CWORD=2 hydra_bash_completion; printf "%s\\n" "${COMPREPLY[@]}"',
    "fish": 'complete -C "etude status tab"',
    "zsh": "print -l ${_comps[etude]}",
}


@pytest.mark.parametrize("shell", INSTALL)
def test_the_line_of_the_documents_installs_completion_in_the_shell(shell, tmp_path):
    if not (found := shutil.which(shell)):
        pytest.skip(f"{shell} is not installed")
    (tmp_path / "etude").write_text(ETUDE)
    (tmp_path / "etude").chmod(0o755)
    path = f"{tmp_path}:{os.environ['PATH']}"
    done = subprocess.run(
        [found, "-c", f"{INSTALL[shell]}\n{ASK[shell]}"],
        cwd=tmp_path,
        env=os.environ | {"PATH": path, "HOME": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.stderr == ""
    if shell == "zsh":  # which asks a terminal for the key itself
        assert "hydra_bash_completion" in done.stdout
    else:
        assert done.stdout.split() == [name for name in study_names() if name.startswith("tab")]
