"""Sweep files in the forms that people have are searches, lists of runs, or refused by name."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest
from optuna.pruners import PercentilePruner

from etude.cli.main import main
from etude.config.compose import compose
from etude.config.resolve import resolve_valid
from etude.search.hyperband import Hyperband
from etude.search.search import Objective, Promotion, Search

from .conftest import Given

OWN = Path(__file__).with_name("sweeps")
SMALL = ("budget=smoke", "logger=none")
SHARED = {  # each with its trials
    "hydra-basic": 4,
    "hydra-optuna": 6,
    "hydra-optuna-template": 5,
    "wandb-bayes-hyperband": 6,
    "wandb-command": 8,
    "wandb-distributions": 8,
    "wandb-maximize": 5,
    "wandb-nested": 4,
}


@pytest.fixture(scope="session")
def shared_sweeps() -> Path:
    """A folder with sweep files: $ETUDE_SHARED_SWEEPS, or `shared/sweeps` beside the checkout."""
    folder = Path(os.environ.get("ETUDE_SHARED_SWEEPS") or Path(__file__).parents[3] / "shared" / "sweeps")
    if not (folder / "hydra-optuna.yaml").is_file():
        pytest.skip("needs sweep files as people have them: set ETUDE_SHARED_SWEEPS to a folder with them")
    assert {file.stem for file in folder.glob("*.yaml")} == {*SHARED}
    return folder


@pytest.fixture
def launched(given: Given, tmp_path: Path) -> Callable[[Path], Search | list[list[str]]]:
    """Runs a sweep file, or a config file with a sweep, and returns what the launcher is given: a search, or runs."""

    def run(file: Path) -> Search | list[list[str]]:
        words = ["sweep", str(file), *SMALL]
        if file.name.startswith("hydra"):
            (tmp_path / "conf/search").mkdir(parents=True)
            (tmp_path / "conf/search/mine.yaml").write_text(file.read_text())
            words = ["train", "+search=mine", *SMALL]
        with pytest.raises(SystemExit, match="0"):
            main(words)
        [one] = given
        return one

    return run


@pytest.mark.parametrize(("name", "trials"), SHARED.items())
def test_shared_files_have_their_trials(
    name: str, trials: int, shared_sweeps: Path, launched: Callable[[Path], Search | list[list[str]]]
) -> None:
    found = launched(shared_sweeps / f"{name}.yaml")
    assert (found.n_trials if isinstance(found, Search) else len(found)) == trials


def own(name: str, launched: Callable[[Path], Search | list[list[str]]]) -> Search:
    search = launched(OWN / f"{name}.yaml")
    assert isinstance(search, Search)
    return search


def test_a_random_search_is_stopped_by_the_best_so_far(launched: Callable[[Path], Search | list[list[str]]]) -> None:
    search = own("wandb-random-stopped", launched)
    assert search.stopping == Hyperband(max_iter=9, s=2, eta=3, strict=False)
    assert search.fixed == SMALL
    assert {*search.space} == {"budget.lr_factor", "model.dropout", "optimizer", "metrics"}


def test_a_pruner_and_two_seeds(launched: Callable[[Path], Search | list[list[str]]]) -> None:
    search = own("wandb-pruner", launched)
    assert isinstance(search.stopping, PercentilePruner)
    assert (search.seeds, search.n_trials, search.n_jobs, search.impute) == ((1, 2), 4, 2, "best")


def test_a_file_for_hyperband_at_wandb_promotes_here(launched: Callable[[Path], Search | list[list[str]]]) -> None:
    search = own("wandb-promote", launched)
    assert search.promotion == Promotion((1 / 9, 1 / 3, 1.0), 3)
    assert search.stopping is None


def test_two_metrics_and_an_old_space(launched: Callable[[Path], Search | list[list[str]]]) -> None:
    search = own("hydra-old-space", launched)
    assert search.objectives == (Objective("valid.perplexity"), Objective("parameters"))
    assert (search.name, search.n_trials, search.seed) == ("old", 8, 7)
    assert [*search.space] == ["budget.lr_factor", "model.dropout", "model.heads", "model/norm"]
    config = resolve_valid(compose([*search.fixed, "model.heads=2"]))  # a trial, in whose config no run has the metrics
    assert (config["objective"], config["model"]["heads"]) == ("valid.perplexity", 2)
    assert not {"optimized_metric", "hydra"} & {*config}


def test_a_grid_of_hydras(launched: Callable[[Path], Search | list[list[str]]]) -> None:
    assert own("hydra-grid", launched).n_trials == 6
