"""The fingerprint of the code changes with what a run can reach, and with nothing else. Edits are made in a copy."""

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pytest

from etude.runs.code import code_fingerprint, own_code
from etude.runs.source import Source

ROOT = Path(__file__).parents[2]
BASE = (
    "etude.model.position.Sinusoidal",
    "etude.model.attention.MultiHeadAttention",
    "etude.training.loss.LabelSmoothing",
)
ROPE = ("etude.model.position.Rotary", *BASE[1:])
MINE = ("mine.parts.Mine", *BASE)
PROGRAM = (
    "import json, sys; from etude.runs.code import code_fingerprint; assert 'torch' not in sys.modules; "
    "print(json.dumps([code_fingerprint(config) for config in json.loads(sys.argv[1])]))"
)
Fingerprints = tuple[str, str, str]


@pytest.fixture
def copied(tmp_path: Path) -> Path:
    """A copy of the package, and a package of a user's beside it."""
    shutil.copytree(ROOT / "src" / "etude", tmp_path / "etude", ignore=shutil.ignore_patterns("__pycache__"))
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "__init__.py").touch()
    (tmp_path / "mine" / "parts.py").write_text(
        "from helpers import act\nfrom .sizes import SIZE\n\nclass Mine:\n    act, size = act, SIZE\n"
    )
    (tmp_path / "helpers.py").write_text("def act(x):\n    return x\n")
    (tmp_path / "mine" / "sizes.py").write_text("SIZE = 1\nOTHER = 2\n")
    return tmp_path


def python(copied: Path, program: str, *words: str) -> str:
    """What a program prints that finds the copy."""
    done = subprocess.run(
        [sys.executable, "-c", program, *words],
        env=os.environ | {"PYTHONPATH": str(copied)},
        cwd=copied,
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout


def naming(targets: Iterable[str]) -> dict[str, Any]:
    """A config that names some classes."""
    return {"parts": [{"_target_": target} for target in targets]}


def fingerprints(copied: Path) -> Fingerprints:
    """Of a base run, of one with rotary positions, and of one with a user's class."""
    return tuple(json.loads(python(copied, PROGRAM, json.dumps([*map(naming, (BASE, ROPE, MINE))]))))


def edited(file: Path, pattern: str, replacement: str) -> None:
    text, times = re.subn(pattern, replacement, file.read_text(encoding="utf-8"), count=1)
    assert times == 1, f"{pattern} is not in {file}"
    file.write_text(text, encoding="utf-8")


def appended(file: Path, text: str) -> None:
    file.write_text(file.read_text(encoding="utf-8") + text, encoding="utf-8")


NEW = "\n\nclass New(NoPosition):\n    def embed(self, x, start):\n        return 2 * x\n"
CHANGES: dict[str, tuple[Callable[[Path], None], tuple[bool, bool, bool]]] = {
    "a comment, a docstring, a blank line": (
        lambda src: edited(src / "etude/model/attention.py", r'"""', '# why\n\n"""Otherwise. '),
        (False, False, False),
    ),
    "a variation in a new file": (
        lambda src: (src / "etude/model/position/new.py").write_text(f"from .base import NoPosition{NEW}"),
        (False, False, False),
    ),
    "a variation in the file of its axis": (
        lambda src: appended(src / "etude/model/position/base.py", NEW),
        (False, False, False),
    ),
    "a variation that the base run does not use": (
        lambda src: edited(
            src / "etude/model/position/relative.py", r"\n    def (\w+)\(", r"\n    extra = 1\n\n    def \1("
        ),
        (False, True, False),
    ),
    "the model": (
        lambda src: edited(
            src / "etude/model/encoder_decoder.py", r"\n    def (\w+)\(", r"\n    extra = 1\n\n    def \1("
        ),
        (True, True, True),
    ),
    "a constant that a class uses": (
        lambda src: edited(src / "etude/data/tokenizer.py", r"(?m)^PAD\b(.*)$", r"PAD\1 + 0"),
        (True, True, True),
    ),
    "what is done on import": (
        lambda src: appended(src / "etude/training/loss.py", "\nLabelSmoothing.more = 1\n"),
        (True, True, True),
    ),
    "where a name comes from": (
        lambda src: edited(
            src / "etude/model/attention.py", r"(?m)^from torch import Tensor, nn$", "from torchy import Tensor, nn"
        ),
        (True, True, True),
    ),
    "how runs are shown, configured and reported": (
        lambda src: [
            appended(src / "etude" / file, "\nEXTRA = 1\n")
            for file in (
                "cli/main.py",
                "report/render/rows.py",
                "tasks/counted.py",
                "config/check.py",
                "runs/run_dir.py",
            )
        ],
        (False, False, False),
    ),
    "what a user's class uses": (lambda src: edited(src / "mine/sizes.py", "1", "3"), (False, False, True)),
    "what a user's class does not use": (lambda src: edited(src / "mine/sizes.py", "2", "3"), (False, False, False)),
    "a module beside a user's package": (lambda src: edited(src / "helpers.py", "x$", "-x"), (False, False, True)),
    "the end of a user's class": (lambda src: (src / "mine/parts.py").unlink(), (False, False, True)),
}


@pytest.mark.parametrize("change", CHANGES)
def test_a_change_changes_the_fingerprint_of_the_runs_that_it_reaches(copied: Path, change: str) -> None:
    before = fingerprints(copied)
    make, reached = CHANGES[change]
    make(copied)
    assert tuple(a != b for a, b in zip(before, fingerprints(copied), strict=True)) == reached


def test_ten_hex_digits_that_the_order_and_the_logger_leave_alone() -> None:
    config = {"model": {"a": {"_target_": BASE[0]}, "b": [{"_target_": BASE[1]}]}, "loss": {"_target_": BASE[2]}}
    found = code_fingerprint(config | {"logger": {"_target_": "etude.training.loggers.wandb"}})
    assert re.fullmatch("[0-9a-f]{10}", found)
    assert found == code_fingerprint(dict(reversed(config.items()))) == code_fingerprint(naming(BASE))


def test_code_that_was_shown_to_give_the_same_results_keeps_its_name_until_it_changes_again(copied: Path) -> None:
    before = fingerprints(copied)
    edited(copied / "etude/training/loss.py", r"\nclass LabelSmoothing\b", r"\nEXTRA = 1\n\nclass LabelSmoothing")
    edited(copied / "etude/training/loss.py", r"(\nclass LabelSmoothing.*)", r"\1\n    extra = EXTRA\n")
    changed = fingerprints(copied)
    appended(copied / "etude/runs/same_code.txt", f"{changed[0]} {before[0]}\n")
    assert fingerprints(copied) == (before[0], *changed[1:])
    edited(copied / "etude/training/loss.py", "EXTRA = 1", "EXTRA = 2")
    assert fingerprints(copied)[0] not in (before[0], changed[0])


def test_the_code_of_a_users_part_changes_with_it_and_not_with_the_training(copied: Path) -> None:
    def own() -> str:
        program = "from etude.runs.code import own_code; print(own_code({'_target_': 'mine.parts.Mine'}))"
        return python(copied, program)

    before = own()
    assert re.fullmatch("[0-9a-f]{10}\n", before)
    appended(copied / "etude/training/loss.py", "\nLabelSmoothing.more = 1\n")
    assert own() == before
    edited(copied / "mine/sizes.py", "1", "3")
    assert own() != before
    assert own_code({"_target_": "etude.data.grammar.GrammarCorpus"}) == ""


def test_what_is_nowhere_or_in_a_library_is_no_error() -> None:
    found = {code_fingerprint(naming([name])) for name in ("torch.nn.GELU", "nowhere.Part", "etude.nowhere.Part", "x")}
    assert len(found) == 4


def test_a_source_tells_what_a_name_needs(tmp_path: Path) -> None:
    file = tmp_path / "part.py"
    file.write_text(
        "from typing import TYPE_CHECKING\n"
        "import numpy as np\n"
        "from .near import one as first\n"
        "if TYPE_CHECKING:\n    from heavy import Type\n"
        "if True:\n    A = np.linalg.norm\n"
        "def f(x: 'Type'):\n    from late import more\n    return first(A, more.much(x).y, g)\n"
        "async def g(): '''Doc.'''\n"
        "f.attribute = 1\n"
        "if __name__ == '__main__':\n    f()\n"
    )
    source = Source("pkg.part", file)
    assert source.names == ["A", "f", "g"]
    needs = {name: source.definition(name).needs for name in ("A", "f", "g", "first")}
    assert needs["A"] == {"numpy.linalg.norm", "pkg.part.A"}
    assert needs["f"] == {"pkg.near.one", "pkg.part.A", "pkg.part.g", "late.more.much"}
    assert needs["g"] == frozenset()
    assert needs["first"] == {"pkg.near.one"}
    assert source.definition("x") is None
    assert source.on_import.needs == {"pkg.part.f"}
