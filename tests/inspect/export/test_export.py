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


def log_probabilities_differ_by(run: RunDir, folder: Path, length: int) -> float:
    """The largest difference between what the folder and the run give to a target for a source of so many tokens."""
    _, model, tokenizer = load_trained(run)
    source, target = [5 + k % 20 for k in range(length)], [5, 9]
    with torch.no_grad():
        mask = torch.ones(1, length + 1, dtype=torch.bool)
        ours = model(torch.tensor([[*source, EOS]]), mask, torch.tensor([[BOS, *target]])).log_softmax(dim=-1)
    translator = ctranslate2.Translator(str(folder), compute_type="float32", intra_threads=1)
    [score] = translator.score_batch([tokenizer.subwords(source)], [tokenizer.subwords(target)], max_input_length=0)
    return float((ours[0, range(3), [*target, EOS]] - torch.tensor(score.log_probs)).abs().max())


@pytest.mark.parametrize(("override", "length"), [("precision=64-true", 2), ("budget.max_tokens=2100", 2100)])
def test_whatever_a_run_may_be_given_its_folder_takes_too(
    run: RunDir, tmp_path: Path, override: str, length: int
) -> None:
    other = freeze(compose([*run.overrides(), "budget.max_steps=2", override, f"runs_dir={tmp_path}"]))
    train(other)
    assert etude("export", str(other.path), "--ctranslate2", str(tmp_path / "made")) == 0
    assert log_probabilities_differ_by(other, tmp_path / "made", length) < 1e-4


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
