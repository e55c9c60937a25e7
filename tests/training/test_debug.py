"""The presets of `debug`: short, beside the results, and each for its own question."""

from collections.abc import Callable
from pathlib import Path

import pytest

from etude.config.compose import compose
from etude.config.compose_cache import ConfigCache
from etude.config.freeze import freeze
from etude.store.metrics_file import read_metrics
from etude.store.run_dir import RunDir
from etude.training.run import train

SMALL = ["trainer=cpu", "tokenizer.vocab_size=300", "model.n_layers=1", "decoding=greedy", "decoding.max_len_offset=2"]


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("cache")


@pytest.fixture
def debugged(tmp_path: Path, cache: Path) -> Callable[..., RunDir]:
    """Freezes runs in the test's folder."""
    return lambda *typed: freeze(compose([f"runs_dir={tmp_path}/runs", f"cache_dir={cache}", *SMALL, *typed]))


def test_a_fast_run_takes_a_few_steps_and_logs_nowhere(debugged: Callable[..., RunDir], tmp_path: Path) -> None:
    run = debugged("debug=fast", "experiment=table3/A1")
    assert run.path.parent == tmp_path / "runs" / "debug" / "A1"
    config = run.config()
    assert (config["model"]["heads"], config["logger"], config["stale"]) == (1, {}, "rerun")
    assert train(run)["steps"] == 10


def test_one_batch_again_and_again_is_learned_by_heart(debugged: Callable[..., RunDir]) -> None:
    run = debugged("debug=overfit")
    train(run)
    losses = [float(row["loss"]) for row in read_metrics(run.metrics_file) if row["loss"]]
    assert losses[0] > 1
    assert losses[-1] < 0.05


def test_a_profile_is_a_file_of_a_training_even_where_another_run_has_the_same_weights(
    debugged: Callable[..., RunDir],
) -> None:
    other = debugged("budget=smoke", "logger=none")
    train(other)
    run = debugged("debug=profile")
    assert run.id == other.id
    train(run)
    assert "run_training_batch" in (run.path / "fit-profile.txt").read_text()


@pytest.mark.parametrize("debug", ["fast", "overfit", "profile"])
def test_every_preset_is_filed_apart_by_a_sweep_too(debug: str) -> None:
    found = ConfigCache().resolve([f"debug={debug}", "experiment=table3/A1", "seed=2"])
    assert (found.config["study"], found.config["arm"]) == ("debug", "A1")
