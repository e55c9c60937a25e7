from pathlib import Path

import pytest

from etude.cli.sweep import main as sweep
from etude.errors import UserError
from etude.search.search import Objective
from etude.search.sweep_file import objective_of

GRID = "method: grid\nparameters: {seed: {values: [1, 2]}}\n"


@pytest.fixture
def write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path / "mine.yaml"


@pytest.mark.parametrize(
    ("metric", "read"),
    [
        ("", None),
        ("metric: {name: test/bleu, goal: maximize}", Objective("test/bleu", maximize=True)),
        ("metric: {name: test/bleu}", Objective("test/bleu", maximize=False)),  # as at W&B
        ("metric: {name: valid.perplexity, goal: minimize, target: 60}", Objective("valid.perplexity", maximize=False)),
    ],
)
def test_the_metric_of_a_file_is_read_as_at_wandb(metric: str, read: Objective | None, write: Path) -> None:
    write.write_text(GRID + metric)
    assert objective_of("mine.yaml") == read


def test_a_study_names_no_metric() -> None:
    assert objective_of("table3") is None


@pytest.mark.parametrize(
    ("metric", "sentence"),
    [
        ("{name: test/bleu, goal: max}", r"mine\.yaml: metric\.goal is .max.: write minimize or maximize"),
        ("test/bleu", r"mine\.yaml: metric needs a name"),
        ("{goal: minimize}", r"mine\.yaml: metric needs a name"),
    ],
)
def test_a_mistake_in_the_metric_is_told_before_anything_is_trained(metric: str, sentence: str, write: Path) -> None:
    write.write_text(f"{GRID}metric: {metric}\n")
    with pytest.raises(UserError, match=sentence):
        sweep(["mine.yaml"])
