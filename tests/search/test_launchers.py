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


RANDOM = SEARCH | {"method": "random", "search": {"sampler": "random", "n_jobs": 1}}


@pytest.fixture
def searched(tmp_path: Path) -> Callable[..., Found]:
    """Runs a search in a folder of its own, and returns its trials and the weights that they ended with."""

    def search(name: str, *words: str, file: dict[str, Any] = SEARCH, processes: int = 1, **environment: str) -> Found:
        folder = tmp_path / name
        folder.mkdir()
        (folder / "search.yaml").write_text(yaml.safe_dump(file))
        own = os.environ | {"ETUDE_CACHE": str(tmp_path / "cache"), "OMP_NUM_THREADS": "1"} | environment
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


@pytest.mark.slow
def test_a_search_makes_the_same_trials_wherever_its_runs_are_trained(
    searched: Callable[..., Found], tmp_path: Path
) -> None:
    pytest.importorskip("ray", reason="needs Ray: pip install 'etude[ray]'")
    pytest.importorskip("submitit", reason="needs submitit: pip install 'etude[slurm]'")
    slurm = tmp_path / "cluster"
    subprocess.run([sys.executable, STANDIN, slurm, "install"], check=True)
    (slurm / "open").touch()
    path = f"{slurm / 'bin'}{os.pathsep}{os.environ['PATH']}"
    on_slots = searched("slots")
    assert len(on_slots["trials"]) == 3
    assert on_slots["weights"]
    assert searched("ray", "hydra/launcher=ray", RAY_USAGE_STATS_ENABLED="0") == on_slots
    assert searched("slurm", "hydra/launcher=submitit_slurm", "hydra.launcher.cpus_per_task=1", PATH=path) == on_slots
    assert [*slurm.glob("*.sh")]


@pytest.mark.slow
def test_a_paused_trial_that_is_typed_by_hand_goes_on_and_ends_as_one_that_was_never_paused(
    searched: Callable[..., Found], tmp_path: Path
) -> None:
    searched("paused")
    folder = tmp_path / "paused"
    [journal] = folder.glob("runs/*/*.journal")
    [search] = read_journal(journal)
    paused = next(trial for trial in search.trials if len(trial.curve) == 1)
    words = [*(f"{key}={value}" for key, value in FIXED.items()), *paused.overrides]
    own = os.environ | {"ETUDE_CACHE": str(tmp_path / "cache"), "OMP_NUM_THREADS": "1"}
    results = []
    for place in (folder, tmp_path / "never"):
        place.mkdir(exist_ok=True)
        command = [warm.python(), "-m", "etude", "train", *words]
        done = subprocess.run(command, cwd=place, env=own, capture_output=True, text=True, timeout=300)
        assert done.returncode == 0, done.stderr
        results.append(json.loads((place / "runs" / paused.notes["runs"][0] / "result.json").read_text()))
    assert results[0]["weights"] == results[1]["weights"]
    assert results[0]["steps"] == 8


@pytest.mark.slow
def test_two_processes_share_the_trials_of_a_search(searched: Callable[..., Found]) -> None:
    alone, together = (searched(str(count), file=RANDOM | {"run_cap": 4}, processes=count) for count in (1, 2))
    assert len(alone["trials"]) == 4
    assert together == alone


@pytest.mark.slow
def test_the_best_trials_and_what_a_search_began_from_are_confirmed_on_fresh_seeds(
    searched: Callable[..., Found], tmp_path: Path
) -> None:
    found = searched("confirmed", "confirm=1", file=RANDOM)
    best = min(found["trials"], key=lambda trial: trial[2][8])[0]
    assert [*found["confirmed"]] == ["baseline", str(best)]
    seeds = [[Path(run).name.partition("-")[0] for run in runs] for runs in found["confirmed"].values()]
    assert seeds == [["seed2", "seed3", "seed4"]] * 2
    runs = [tmp_path / "confirmed/runs" / run for of_one in found["confirmed"].values() for run in of_one]
    results = [json.loads((run / "result.json").read_text()) for run in runs]
    assert len({result["id"] for result in results}) == 6
    command = [warm.python(), "-m", "etude", "report", "search.yaml"]
    told = subprocess.run(command, cwd=tmp_path / "confirmed", capture_output=True, text=True, check=True).stdout
    assert "confirmed" in told
    assert f"trial {best}" in told
