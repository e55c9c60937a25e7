"""`etude export`: a folder that translates by itself what the run translates."""

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch

from etude.cli.main import main
from etude.config.compose import compose
from etude.config.identity import freeze
from etude.config.parts import make
from etude.data.tokenizer import BOS, EOS
from etude.errors import UserError
from etude.runs.run_dir import RunDir
from etude.tasks import build
from etude.trained.load import load_trained
from etude.training.run import train

ctranslate2: Any = pytest.importorskip("ctranslate2", reason="needs the extra ctranslate2")

TINY = ["model.d_model=8", "model.d_ff=16", "model.heads=2", "model.n_layers=1", "trainer=cpu", "logger=none"]
TEXT = ["data=files", "data.holdout=4", "tokenizer.vocab_size=30", "budget=smoke", "budget.max_steps=300"]
LINES = ["a c e g 1", "  b\t d \u3000 f 3", "é is no letter of it", "a b c d e f g h 1 2 3 " * 20]


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> RunDir:
    """A finished run with averaged weights that translates greedily."""
    place = tmp_path_factory.mktemp("place")
    rows = [" ".join("abcdefgh"[(k * j + k // 8) % 8] for j in range(1, 3 + k % 6)) for k in range(1, 200)]
    (place / "pairs.tsv").write_text("".join(f"{row} {k % 8}\t{row} {k % 8}\n" for k, row in enumerate(rows)))
    folders = [f"data.tsv={place / 'pairs.tsv'}", f"runs_dir={place / 'runs'}", f"cache_dir={place / 'cache'}"]
    made = freeze(compose([*TINY, *TEXT, *folders, "decoding=greedy", "callbacks=ema", "callbacks.ema.decay=0.9"]))
    train(made)
    return made


def etude(*words: str) -> int | str | None:
    """The exit status."""
    with pytest.raises(SystemExit) as end:
        main(list(words))
    return end.value.code


def translated_as_the_readme_says(folder: Path, line: str) -> str:
    """What its Python prints, typed in the folder, for a line in the place of the example's."""
    [program] = re.findall(r"```python\n(.*?)```", (folder / "README.md").read_text(), flags=re.DOTALL)
    program = program.replace('"A line of text ."', repr(line))
    return subprocess.run(
        [sys.executable, "-c", program], cwd=folder, capture_output=True, text=True, check=True
    ).stdout.rstrip("\n")


@pytest.mark.slow
@pytest.mark.parametrize("line", LINES)
def test_the_folder_translates_what_the_run_translates(run: RunDir, tmp_path: Path, line: str) -> None:
    assert etude("export", str(run.path), "--ctranslate2", str(tmp_path / "made")) == 0
    config, model, tokenizer = load_trained(run)
    [ours] = build.translator(config, model, tokenizer, make(config["decoding"])).translate([line])
    assert ours
    assert translated_as_the_readme_says(tmp_path / "made", line) == ours


def test_a_run_in_double_precision_is_exported_in_single(run: RunDir, tmp_path: Path) -> None:
    precise = freeze(compose([*run.overrides(), "budget.max_steps=2", "precision=64-true", f"runs_dir={tmp_path}"]))
    train(precise)
    assert etude("export", str(precise.path), "--ctranslate2", str(tmp_path / "made")) == 0
    _, model, tokenizer = load_trained(precise)
    with torch.no_grad():
        target = torch.tensor([[BOS, 5, 9]])
        ours = model(torch.tensor([[7, 6, EOS]]), torch.ones(1, 3, dtype=torch.bool), target).log_softmax(dim=-1)
    translator = ctranslate2.Translator(str(tmp_path / "made"), compute_type="float32", intra_threads=1)
    [score] = translator.score_batch([tokenizer.subwords([7, 6])], [tokenizer.subwords([5, 9])])
    assert score.log_probs == pytest.approx(ours[0, range(3), [5, 9, EOS]].tolist(), abs=1e-4)


def test_the_folder_holds_what_it_promises_and_its_weights_may_be_quantised(
    run: RunDir, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    made, small = tmp_path / "new" / "made", tmp_path / "small"
    assert etude("export", f"run={run.path}", f"--ctranslate2={made}") == 0
    assert capsys.readouterr().out == f"{made}\n"
    names = {"model.bin", "config.json", "shared_vocabulary.json", "sentencepiece.model", "README.md"}
    assert {file.name for file in made.iterdir()} == names
    vocabulary = json.loads((made / "shared_vocabulary.json").read_text())
    assert vocabulary[:4] == ["<pad>", "<s>", "</s>", "<unk>"]
    assert len(set(vocabulary)) == len(vocabulary)
    assert etude("export", str(run.path), "--ctranslate2", str(small), "quantization=int8") == 0
    assert (small / "model.bin").stat().st_size < (made / "model.bin").stat().st_size


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ([], "name one run and a folder to write"),
        (["--ctranslate2"], "--ctranslate2 needs DIR"),
        (["--ctranslate2", "there"], "there is there already: name another folder"),
        (["--ctranslate2", "new", "quantization=int7"], "quantization=int7 is unknown: choose one of int8, "),
        (["--ctranslate2", "new", "quantisation=int8"], "did you mean quantization=?"),
    ],
)
def test_what_cannot_be_done_is_told_in_a_sentence(words, told, run, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "there").mkdir()
    assert etude("export", str(run.path), *words) == 2
    assert told in capsys.readouterr().err
    assert not (tmp_path / "new").exists()


def test_without_the_package_it_says_how_to_get_it(run, tmp_path, monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "ctranslate2.specs.model_spec", None)
    assert etude("export", str(run.path), "--ctranslate2", str(tmp_path / "new")) == 2
    assert "pip install 'etude[ctranslate2]'" in capsys.readouterr().err


def test_a_language_model_is_refused_by_its_task() -> None:
    task = {"_target_": "etude.tasks.language_modelling.LanguageModelling", "side": "target"}
    with pytest.raises(UserError, match="`etude export` has no use for a run whose task is LanguageModelling"):
        build.task({"task": task}, "export")
