"""CONTRIBUTING.md, followed to the letter in a copy of the project: one class and one YAML file add a variation."""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
DOCUMENT = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
PARTS = ("src", "conf", "experiments", "sweeps", "tests", "pyproject.toml")


def step(language: str) -> tuple[str, str]:
    """The file that a step of the document names, and the block it says to put there."""
    match = re.search(rf"`((?:src|conf)/\S+)`:\n\n```{language}\n(.*?)```", DOCUMENT, flags=re.DOTALL)
    assert match
    return match[1], match[2]


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the project in which somebody has taken the two steps."""
    copy = tmp_path_factory.mktemp("project")
    for part in PARTS:
        if (ROOT / part).is_dir():
            shutil.copytree(ROOT / part, copy / part, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(ROOT / part, copy / part)
    file, block = step("python")
    with (copy / file).open("a", encoding="utf-8") as module:
        module.write(f"\n\n{block}")
    file, block = step("yaml")
    assert not (copy / file).exists()
    (copy / file).write_text(block, encoding="utf-8")
    return copy


def run(project: Path, *words: str) -> str:
    environment = os.environ | {"PYTHONPATH": str(project / "src"), "OMP_NUM_THREADS": "1", "COLUMNS": "120"}
    done = subprocess.run(
        [sys.executable, "-m", *words], cwd=project, env=environment, capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    return done.stdout


CHOICE = "model/scale=constant"
SMALL = ("budget=smoke", "logger=none", "data.train_pairs=400", "data.valid_pairs=20", "data.test_pairs=20")


@pytest.mark.slow
def test_the_new_variation_is_listed(project):
    listed = re.search(r"^  model/scale +(.*)$", run(project, "etude", "train", "--help"), flags=re.MULTILINE)
    assert listed
    assert "constant" in listed[1].split(", ")


@pytest.mark.slow
def test_the_new_variation_trains(project):
    assert "test perplexity" in run(project, "etude", "train", CHOICE, "data.vocab_size=500", *SMALL)


@pytest.mark.slow
def test_the_new_variation_is_an_arm_of_the_study_of_all_axes_and_is_planned(project):
    (planned,) = json.loads(run(project, "etude", "plan", "experiment=axes/scale-constant", "--json"))["runs"]
    assert planned["differs"] == {"model/scale": "constant"}
    assert planned["parameters"] > 0


@pytest.mark.slow
def test_the_claims_hold_the_new_variation(project):
    claims = ("pytest", "-p", "no:xdist", "-p", "no:cacheprovider", "tests/model/test_claims.py", "-k", "constant")
    passed = re.search(r"(\d+) passed", run(project, *claims))
    assert passed
    assert int(passed[1]) >= 10
