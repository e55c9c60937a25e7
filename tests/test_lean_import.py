"""Lightning is imported without scipy.signal, and nobody misses it."""

import importlib
import subprocess
import sys
from pathlib import Path

import pytest

from etude import lean_import

PROGRAM = """
import gc, sys
import etude.training.run
assert "lightning" in sys.modules
assert "scipy.signal" not in sys.modules
assert gc.isenabled()
import scipy.signal
assert scipy.signal.lfilter is sys.modules["scipy.signal"].lfilter
"""


def test_training_is_imported_without_what_it_does_not_use_which_is_there_for_whoever_does() -> None:
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


OWN = """
import sys
from etude.config.signature import signature
signature("own.Mine")
assert "lightning" in sys.modules
assert "scipy.signal" not in sys.modules
"""


@pytest.mark.parametrize(
    ("line", "used"),
    [
        ("from scipy.signal.windows import hann", "hann"),
        ("from scipy.signal import *", "butter"),
    ],
)
def test_a_module_of_the_users_has_all_of_it_that_it_imports(line: str, used: str, tmp_path: Path) -> None:
    (tmp_path / "own.py").write_text(f"{line}\nfrom lightning import Callback\nclass Mine(Callback): own = {used}\n")
    program = "from etude.config.signature import signature; signature('own.Mine')"
    done = subprocess.run([sys.executable, "-c", program], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_nor_is_it_by_a_callback_of_the_users(tmp_path: Path) -> None:
    (tmp_path / "own.py").write_text("from lightning import Callback\nclass Mine(Callback): ...\n")
    done = subprocess.run([sys.executable, "-c", OWN], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("asked", ["hamming", "lfilter"])
def test_whoever_asks_the_stand_in_for_more_than_the_one_name_gets_the_module_itself(
    asked: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "slow_one.py").write_text("lfilter = 'a filter'\n")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "torchmetrics", raising=False)
    found = []

    def import_module(name: str) -> object:
        if name != "lightning":
            return importlib.import_module(name)
        found.append(getattr(importlib.import_module("slow_one"), asked))
        return None

    monkeypatch.setattr(lean_import, "_SLOW", "slow_one")
    monkeypatch.setattr(lean_import, "import_module", import_module)
    lean_import.import_lightning()
    assert found == [{"hamming": None, "lfilter": "a filter"}[asked]]
    assert ("slow_one" in sys.modules) == (asked == "lfilter")
    monkeypatch.delitem(sys.modules, "slow_one", raising=False)
