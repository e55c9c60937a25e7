"""Code keeps its name if it gives the results of the code before, and only then."""

import re
import shutil
import sys
from importlib import import_module
from pathlib import Path
from types import ModuleType

import pytest
import yaml

from etude.config.compose import compose
from etude.config.resolve import resolve
from etude.files import write_json
from etude.runs.code import code_digits
from etude.runs.run_dir import RunDir

ROOT = Path(__file__).parents[1]
TINY = ["model.d_model=8", "model.d_ff=16", "model.heads=2", "model.n_layers=1", "trainer=cpu", "logger=none"]
SHORT = {"max_steps": 8, "warmup_steps": 4, "val_every": 4, "bleu_sentences": 2, "pairs": 300, "test_pairs": 20}


@pytest.fixture
def script(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """The script with a record of two small arms, and two copies of the code."""
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    module = import_module("same_code")
    for tree in ("before", "today"):
        for folder in ("src", "conf"):
            shutil.copytree(ROOT / folder, tmp_path / tree / folder, ignore=shutil.ignore_patterns("__pycache__"))
        names = tmp_path / tree / "src/etude/runs/same_code.txt"
        names.write_text("# Code that was shown\nffffffffff eeeeeeeeee\n", encoding="utf-8")
    monkeypatch.setattr(module, "ROOT", tmp_path / "today")
    monkeypatch.setattr(module, "NAMES", tmp_path / "today/src/etude/runs/same_code.txt")
    monkeypatch.setattr(module, "RECORD", tmp_path / "record")
    monkeypatch.setattr(module, "SHORT", SHORT)
    monkeypatch.setattr(sys, "argv", ["same_code.py", str(tmp_path / "before"), str(tmp_path)])
    (tmp_path / "multi30k").mkdir()
    for arm, changes in (("base", []), ("rope", ["model/position=rope"])):
        run = RunDir(tmp_path / "record" / "study" / arm / "seed1-0123456789")
        run.path.mkdir(parents=True)
        config = resolve(compose([*TINY, "tokenizer.vocab_size=300", *changes]))
        run.config_file.write_text(yaml.safe_dump(config, sort_keys=False), encoding="utf-8")
        for file in (run.overrides_file, run.path / "training.txt"):
            file.touch()
        write_json(run.result_file, {"code": code_digits(run.config())})
    return module


def edit(script: ModuleType, file: str, pattern: str, replacement: str) -> None:
    path = script.ROOT / "src" / "etude" / file
    text, times = re.subn(pattern, replacement, path.read_text(encoding="utf-8"), count=1)
    assert times == 1
    path.write_text(text, encoding="utf-8")


@pytest.mark.parametrize("lacking", ["before/src/etude", "multi30k"])
def test_a_mistyped_folder_is_told_before_anything_is_trained(
    script: ModuleType, lacking: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / lacking).rename(tmp_path / "elsewhere")
    with pytest.raises(SystemExit) as end:
        script.main()
    assert end.value.code == 2
    assert f"there is no folder {tmp_path / lacking}" in capsys.readouterr().err


@pytest.mark.slow
def test_only_code_that_gives_the_same_results_keeps_its_name(
    script: ModuleType, capsys: pytest.CaptureFixture[str]
) -> None:
    edit(script, "training/loss.py", "must lie in", "has to lie in")  # of both arms
    edit(script, "model/position/relative.py", r"- odd \* sine", "+ odd * sine")  # of the one that rotates
    assert script.main() == 1
    base, rope = script.arms(script.ROOT.parent / "before").items()
    head, (today, before), other = map(str.split, script.NAMES.read_text(encoding="utf-8").splitlines())
    assert head[0] == "#"
    assert base[1] == before != today
    assert other == ["ffffffffff", "eeeeeeeeee"], "what else is known stays"
    assert script.arms(script.ROOT) == dict([base]), "its code is known as that before, and that of the other is not"
    assert f"\nNOT THE SAME {rope[0].relative_to(script.RECORD)}" in capsys.readouterr().out
