"""Which finished runs have diverged, and what becomes of one that does: the same word wherever it is looked at."""

import json
import math
from pathlib import Path
from typing import Any

import pytest
from tests.letters import TEXT, TINY, write_pairs

from etude.cli.main import main
from etude.launch.job import Job
from etude.model.attention import MultiHeadAttention
from etude.model.cache import NO_CACHE
from etude.report import results
from etude.store.divergence import EXIT_STATUS, divergence
from etude.store.metrics_file import read_metrics
from etude.store.records import read_run
from etude.store.run_dir import RunDir
from etude.store.run_state import State

BUDGET = ["budget=smoke", "budget.max_steps=6", "budget.val_every=4", "decoding=greedy", "decoding.max_len_offset=2"]
WORDS = ["experiment=table3/A1", *TINY, *TEXT, "data.tsv=pairs.tsv", "cache_dir=cache", *BUDGET]


@pytest.mark.parametrize(
    ("result", "why"),
    [
        ({"test": {"perplexity": 3.5, "bleu": 0.0}}, None),
        ({}, None),
        ({"test": {"perplexity": math.inf, "bleu": 0.0}}, "the test perplexity is inf"),
        ({"test": {"perplexity": 3.5, "bleu": math.nan}}, "the test bleu is nan"),
        ({"test": {"perplexity": 3.5, "bleu": 40.0, "chrf": math.inf}}, "the test chrf is inf"),
        ({"test": {"perplexity": math.nan}, "diverged": "the loss is nan at step 7"}, "the loss is nan at step 7"),
    ],
)
def test_a_run_has_diverged_where_it_says_so_or_where_its_scores_are_no_numbers(
    result: dict[str, Any], why: str | None
) -> None:
    assert divergence(result) == why


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An empty folder with a small parallel text."""
    folder = tmp_path_factory.mktemp("place")
    write_pairs(folder)
    return folder


@pytest.fixture(autouse=True)
def inside(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(place)


def train(*words: str) -> tuple[int, RunDir]:
    """The exit status of a training, and its directory."""
    with pytest.raises(SystemExit) as end:
        main(["train", *WORDS, *words])
    runs_dir = next((word.partition("=")[2] for word in words if word.startswith("runs_dir=")), "runs")
    [run] = Path(runs_dir).glob("table3/A1/seed*")
    return int(str(end.value.code)), RunDir(run)


def test_a_training_that_diverges_stops_at_once_and_says_so(capsys: pytest.CaptureFixture[str]) -> None:
    status, run = train("budget.lr_factor=1e30")
    told = capsys.readouterr()
    assert status == EXIT_STATUS
    why = run.result()["diverged"]
    assert why == "the loss is nan at step 2"
    both = f"{run.path} and {run.own_training.path} are deleted"
    assert f"diverged: {why}; trainer.stop_when_diverged=false goes on, once {both}" in told.err
    assert told.out.splitlines()[-1] == f"diverged: {why}"
    assert int(read_metrics(run.metrics_file)[-1]["step"]) == run.result()["steps"] == 2
    assert not run.hypotheses_file.exists()


def test_the_weights_of_the_last_update_are_looked_at_though_no_loss_has_met_them() -> None:
    with pytest.raises(SystemExit) as end:
        main(["train", *WORDS, "budget.lr_factor=1e60", "budget.max_steps=1", "runs_dir=last"])
    [run] = (RunDir(path) for path in Path("last").glob("table3/A1/seed*"))
    assert end.value.code == EXIT_STATUS
    assert run.result()["diverged"] == "a weight is not a finite number at step 1"


def test_typed_again_it_is_not_computed_again_and_still_no_success(capsys: pytest.CaptureFixture[str]) -> None:
    train("budget.lr_factor=1e30")
    capsys.readouterr()
    status, run = train("budget.lr_factor=1e30")
    assert status == EXIT_STATUS
    assert "already finished" in capsys.readouterr().err
    assert Job(run).state is State.DIVERGED


def test_it_is_diverged_wherever_one_looks(capsys: pytest.CaptureFixture[str]) -> None:
    _, run = train("budget.lr_factor=1e30")
    capsys.readouterr()
    assert read_run(run).state is State.DIVERGED
    [row] = results("table3").frame().to_dict("records")
    assert row["diverged"] == "the loss is nan at step 2"
    for words in (["status", "table3"], ["report", "table3"]):
        with pytest.raises(SystemExit) as end:
            main(words)
        told = capsys.readouterr().out
        assert end.value.code == 0, told
        assert "the loss is nan at step 2" in " ".join(told.split())
    with pytest.raises(SystemExit):
        main(["status", "table3", "--json"])
    assert json.loads(capsys.readouterr().out)["totals"]["diverged"] == 1


def test_who_asks_for_it_trains_on_to_the_end(capsys: pytest.CaptureFixture[str]) -> None:
    status, run = train("budget.lr_factor=1e30", "trainer.stop_when_diverged=false", "runs_dir=on", "study=table3")
    assert status == EXIT_STATUS
    assert run.result()["steps"] == 6
    assert run.result()["diverged"] == "the test perplexity is nan"
    told = capsys.readouterr().err
    assert told.count("the loss is nan at step 2; going on, as trainer.stop_when_diverged=false says") == 1


class Astray(MultiHeadAttention):
    """Multi-head attention that gives NaN from the second token on, when it is asked token by token."""

    def forward(self, x, context, mask, position, cache=NO_CACHE):  # type: ignore[no-untyped-def]
        later = cache.length > 0
        return super().forward(x, context, mask, position, cache) * (math.nan if later else 1.0)


def test_a_model_that_is_no_number_when_it_translates_has_diverged(capsys: pytest.CaptureFixture[str]) -> None:
    own = [f"model.attention._target_={__name__}.Astray", "trainer.check_parts=false"]  # which would refuse it
    status, run = train(*own, "runs_dir=steps")
    assert status == EXIT_STATUS
    assert math.isfinite(run.result()["test"]["perplexity"])
    told = capsys.readouterr().out.splitlines()[-1]
    assert told.startswith("diverged: the model's logits are NaN or infinite: its `step` should")
