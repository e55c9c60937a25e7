"""A class that cannot be had is one sentence, whoever asks for it: before training, or of a trained run."""

import re
from pathlib import Path

import pytest
from hydra.errors import InstantiationException
from hydra.utils import instantiate

from etude.cli.main import main
from etude.config.explain import explain
from etude.config.signature import signature
from etude.errors import UserError


@pytest.fixture
def parts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of a user's modules, one for each thing that may be wrong."""
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "torn_here.py").write_text("x = 1\n\ndef (\n")
    (tmp_path / "needs_more.py").write_text("import math\nimport nobody_has_this\nclass Scale: ...\n")
    (tmp_path / "breaks.py").write_text("class Scale: ...\n\n1 / 0\n")
    (tmp_path / "takes_others.py").write_text("from torch import Tensor, nn\nclass Scale: ...\n")
    (tmp_path / "whole_one.py").write_text("class Scale: ...\n")
    return tmp_path


def of_a_trained_run(target: str) -> str:
    with pytest.raises(InstantiationException) as caught:
        instantiate({"_target_": target})
    told = explain(caught.value)
    assert told is not None
    return str(told)


def before_training(target: str) -> str:
    with pytest.raises(UserError) as caught:
        signature(target)
    return str(caught.value)


CHOOSE = r"goes with hydra/sweeper=optuna: choose that too, in a file by  defaults: \[override /hydra/sweeper: optuna\]"
PLUGIN = "hydra_plugins.hydra_optuna_sweeper.optuna_sweeper.OptunaSweeper"
FILES = {
    "named": f"hydra: {{sweeper: {{_target_: {PLUGIN}, n_trials: 2}}}}",
    "set": "hydra: {sweeper: {n_trials: 2, sampler: {_target_: optuna.samplers.TPESampler}}}",
    "batches": "hydra: {sweeper: {max_batch_size: 2}}",
    "nowhere": "hydra: {sweeper: {_target_: mine.Sweeper}}",
}


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["hydra.sweeper.n_trials=4"], f"hydra.sweeper.n_trials {CHOOSE}"),
        (["hydra/sweeper=ax"], "hydra/sweeper=ax needs pip install hydra-ax-sweeper; without it, hydra/sweeper=optuna"),
        (["+search=named"], f"hydra.sweeper._target_ {CHOOSE}"),
        (["+search=set"], f"hydra.sweeper.n_trials {CHOOSE}"),
        (
            ["+search=batches"],
            "hydra.sweeper.max_batch_size is not a key of hydra.sweeper; choose one of confirm, file",
        ),
        (["+search=nowhere"], "_target_: mine.Sweeper is not a plugin of Hydra's that is installed"),
    ],
)
def test_a_sweeper_that_is_not_installed_or_not_chosen_is_told_with_the_way_out(
    words: list[str], sentence: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for name, content in FILES.items():
        file = tmp_path / "conf/search" / f"{name}.yaml"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(f"# @package _global_\n{content}\n")
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SystemExit, match="2"):
        main(["train", "-m", "seed=1,2", *words])
    [told] = capsys.readouterr().err.splitlines()
    assert re.match(f"etude: {sentence}", told)
    assert not (tmp_path / "runs").exists()


@pytest.mark.parametrize(
    ("target", "sentence"),
    [
        ("whole_one", r"_target_: whole_one is a module: write whole_one\.NAME, a class or function in it"),
        ("torch.nn", r"_target_: torch\.nn is a module: write torch\.nn\.NAME"),
        ("takes_others.nn", r"_target_: torch\.nn is a module: write torch\.nn\.NAME"),
    ],
)
@pytest.mark.usefixtures("parts")
def test_a_module_is_told_to_be_one(target: str, sentence: str) -> None:
    assert re.match(sentence, before_training(target))


@pytest.mark.parametrize(
    ("target", "sentence"),
    [
        ("gone.parts.Scale", r"_target_: gone\.parts\.Scale cannot be found: write package\.module\.Name"),
        ("whole_one.Scal", r"_target_: whole_one\.Scal names nothing in whole_one; did you mean Scale\?"),
        (
            "takes_others.Zzzz",
            r"_target_: takes_others\.Zzzz names nothing in takes_others; choose one of Scale, Tensor$",
        ),
        ("torn_here.Scale", r".*torn_here\.py, line 3: this is not Python: invalid syntax"),
    ],
)
def test_what_the_source_shows_is_told_alike_before_training_and_of_a_trained_run(
    target: str, sentence: str, parts: Path
) -> None:
    assert re.match(sentence, before_training(target))
    assert of_a_trained_run(target) == before_training(target)


@pytest.mark.parametrize(
    ("target", "sentence"),
    [
        ("needs_more.Scale", "needs_more.py, line 2: No module named 'nobody_has_this'"),
        ("breaks.Scale", "breaks.py, line 3: division by zero"),
    ],
)
def test_what_only_an_import_shows_names_file_and_line(target: str, sentence: str, parts: Path) -> None:
    told = of_a_trained_run(target)
    assert told.startswith(f"_target_: {target} cannot be imported: ")
    assert sentence in told
