"""Hydra's side of a random search: `hydra/sweeper=sweepfile`."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
import yaml
from hydra.utils import instantiate

from etude.config.compose import compose
from etude.errors import UserError
from etude.paths import shipped
from etude.search.sweep_file import sweep_overrides, sweep_runs


class Launcher:
    """Takes note."""

    def __init__(self) -> None:
        self.launched: list[Sequence[str]] = []

    def launch(self, job_overrides: Sequence[Sequence[str]], initial_job_idx: int) -> list[Any]:
        assert initial_job_idx == 0
        self.launched += job_overrides
        return []


def launched(*words: str) -> list[Sequence[str]]:
    """What a sweep's words launch, composed and instantiated as Hydra does it."""
    config = compose([word for word in words if word.startswith("hydra")])
    sweeper = instantiate(config.hydra.sweeper)
    sweeper.launcher = Launcher()
    sweeper.sweep([word for word in words if not word.startswith("hydra")])
    return sweeper.launcher.launched


@pytest.fixture
def plain(tmp_path: Path) -> str:
    """A random search in which every run is trained to its end."""
    content = yaml.safe_load((shipped("sweeps") / "learning_rate.yaml").read_text())
    del content["early_terminate"]
    (tmp_path / "plain.yaml").write_text(yaml.safe_dump(content))
    return str(tmp_path / "plain.yaml")


def test_a_random_search_launches_its_draws(plain: str) -> None:
    words = sweep_overrides(plain, ["run_cap=3", "seed=1,2"])
    runs = launched(*words)
    fixed = ["experiment=table3/base", "budget.val_every=100", "seed=1,2"]
    assert [{*run} for run in runs] == [{*run} for run in sweep_runs(fixed, file=plain, run_cap=3)]
    assert [run[-1].partition("=")[0] for run in runs] == ["budget.lr_factor"] * 3
    for run in runs:
        key, _, value = run[-1].partition("=")
        assert 0.1 <= compose(run).budget.lr_factor == float(value) <= 3, key


def test_another_search_seed_launches_others(plain: str) -> None:
    one, other = (launched(*sweep_overrides(plain, ["run_cap=3", f"search_seed={n}"])) for n in (1, 2))
    assert not {run[-1] for run in one} & {run[-1] for run in other}


def test_runs_that_may_be_stopped_are_a_search_which_other_launchers_do_not_know() -> None:
    words = sweep_overrides("learning_rate", ["run_cap=3"])
    with pytest.raises(UserError, match="a search needs a launcher of étude's: hydra/launcher=slots"):
        launched(*words)


def test_a_grid_that_ends_early_launches_its_first_runs() -> None:
    words = sweep_overrides("smoke", ["run_cap=1"])
    assert launched(*words) == [["experiment=table3/base", "budget=smoke", "seed=1"]]
