"""Searches whose runs are trained: on slots, on Ray and on SLURM, by two processes, and confirmed."""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests import warm

from etude.search.recorded import read_journal

STANDIN = Path(__file__).parents[1] / "launch" / "slurm_standin.py"
FIXED = {
    "budget": "smoke",
    "budget.max_steps": 8,
    "budget.val_every": 4,
    "budget.warmup_steps": 1,
    "data.train_pairs": 400,
    "data.valid_pairs": 20,
    "data.test_pairs": 20,
    "data.vocab_size": 300,
    "logger": "none",
}
SEARCH = {
    "method": "bayes",
    "metric": {"name": "valid.loss", "goal": "minimize"},
    "run_cap": 3,
    "search": {"sampler": "tpe", "manner": "promote", "rungs": [0.5, 1], "n_jobs": 1},
    "parameters": {
        **{key: {"value": value} for key, value in FIXED.items()},
        "budget.lr_factor": {"distribution": "log_uniform_values", "min": 0.1, "max": 4.0},
    },
}
Found = dict[str, Any]
RANDOM = SEARCH | {"method": "random", "run_cap": 3, "search": {"sampler": "random", "n_jobs": 1}}


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of all searches, whose text is prepared once."""
    return tmp_path_factory.mktemp("searches")


@pytest.fixture(scope="module")
def searched(place: Path) -> Callable[..., Found]:
    """Runs a search in a folder of its own, and returns its trials and the weights that they ended with."""

    def search(name: str, *words: str, file: dict[str, Any] = SEARCH, processes: int = 1, **environment: str) -> Found:
        folder = place / name
        folder.mkdir(exist_ok=True)
        (folder / "search.yaml").write_text(yaml.safe_dump(file))
        own = os.environ | {"ETUDE_CACHE": str(place / "cache"), "OMP_NUM_THREADS": "1"} | environment
        command = [warm.python(), "-m", "etude", "sweep", "search.yaml", *words]
        with ThreadPoolExecutor(processes) as pool:
            typed = partial(subprocess.run, cwd=folder, env=own, capture_output=True, text=True, timeout=300)
            for done in pool.map(typed, [command] * processes):
                assert done.returncode == 0, done.stderr
        [journal] = folder.glob("runs/*/*.journal")
        [found] = read_journal(journal)
        results = [json.loads(file.read_text()) for file in folder.glob("runs/*/*/seed*/result.json")]
        return {
            "trials": [(trial.number, trial.drawn, trial.curve, str(trial.state)) for trial in found.trials],
            "weights": {result["id"]: result["weights"] for result in results},
            "confirmed": found.confirmed,
        }

    return search


@pytest.fixture(scope="module")
def on_slots(searched: Callable[..., Found]) -> Found:
    """What a search with promotion finds, in the folder `slots`."""
    return searched("slots")


@pytest.fixture(scope="module")
def alone(searched: Callable[..., Found]) -> Found:
    """What one process finds that searches at random, in the folder `alone`."""
    return searched("alone", file=RANDOM)


@pytest.mark.slow
def test_a_search_makes_the_same_trials_wherever_its_runs_are_trained(
    searched: Callable[..., Found], on_slots: Found, tmp_path: Path
) -> None:
    pytest.importorskip("ray", reason="needs Ray: pip install 'etude[ray]'")
    pytest.importorskip("submitit", reason="needs submitit: pip install 'etude[slurm]'")
    slurm = tmp_path / "cluster"
    subprocess.run([sys.executable, STANDIN, slurm, "install"], check=True)
    (slurm / "open").touch()
    path = f"{slurm / 'bin'}{os.pathsep}{os.environ['PATH']}"
    assert len(on_slots["trials"]) == 3
    assert on_slots["weights"]
    assert searched("ray", "hydra/launcher=ray", RAY_USAGE_STATS_ENABLED="0") == on_slots
    assert searched("slurm", "hydra/launcher=submitit_slurm", "hydra.launcher.cpus_per_task=1", PATH=path) == on_slots
    assert [*slurm.glob("*.sh")]


@pytest.mark.slow
def test_a_paused_trial_that_is_typed_by_hand_goes_on_and_ends_as_one_that_was_never_paused(
    on_slots: Found, place: Path, tmp_path: Path
) -> None:
    folder = place / "slots"
    [journal] = folder.glob("runs/*/*.journal")
    [search] = read_journal(journal)
    paused = next(trial for trial in search.trials if len(trial.curve) == 1)
    words = [*(f"{key}={value}" for key, value in FIXED.items()), *paused.overrides]
    own = os.environ | {"ETUDE_CACHE": str(place / "cache"), "OMP_NUM_THREADS": "1"}
    results = []
    for where in (folder, tmp_path):
        command = [warm.python(), "-m", "etude", "train", *words]
        done = subprocess.run(command, cwd=where, env=own, capture_output=True, text=True, timeout=300)
        assert done.returncode == 0, done.stderr
        results.append(json.loads((where / "runs" / paused.notes["runs"][0] / "result.json").read_text()))
    assert results[0]["weights"] == results[1]["weights"]
    assert results[0]["steps"] == 8


@pytest.mark.slow
def test_two_processes_share_the_trials_of_a_search(searched: Callable[..., Found], alone: Found) -> None:
    assert len(alone["trials"]) == 3
    assert searched("together", file=RANDOM, processes=2) == alone


@pytest.mark.slow
def test_the_best_trials_and_what_a_search_began_from_are_confirmed_on_fresh_seeds(
    searched: Callable[..., Found], alone: Found, place: Path
) -> None:
    """Where the search is over when that is asked for."""
    found = searched("alone", "confirm=1", file=RANDOM)
    assert found["trials"] == alone["trials"]
    best = min(found["trials"], key=lambda trial: trial[2][8])[0]
    assert [*found["confirmed"]] == ["baseline", str(best)]
    seeds = [[Path(run).name.partition("-")[0] for run in runs] for runs in found["confirmed"].values()]
    assert seeds == [["seed2", "seed3", "seed4"]] * 2
    runs = [place / "alone/runs" / run for of_one in found["confirmed"].values() for run in of_one]
    results = [json.loads((run / "result.json").read_text()) for run in runs]
    assert len({result["id"] for result in results}) == 6
    command = [warm.python(), "-m", "etude", "report", "search.yaml"]
    told = subprocess.run(command, cwd=place / "alone", capture_output=True, text=True, check=True).stdout
    assert "confirmed" in told
    assert f"trial {best}" in told
