"""The same search on slots, on Ray and on SLURM, with runs that are trained: the same trials, to the last bit."""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

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


@pytest.fixture
def searched(tmp_path: Path) -> Callable[..., Found]:
    """Runs the search in a folder of its own, and returns its trials and the weights that they ended with."""

    def search(name: str, *words: str, **environment: str) -> Found:
        folder = tmp_path / name
        folder.mkdir()
        (folder / "search.yaml").write_text(yaml.safe_dump(SEARCH))
        own = os.environ | {"ETUDE_CACHE": str(tmp_path / "cache"), "OMP_NUM_THREADS": "1"} | environment
        command = [sys.executable, "-m", "etude", "sweep", "search.yaml", *words]
        done = subprocess.run(command, cwd=folder, env=own, capture_output=True, text=True, timeout=300)
        assert done.returncode == 0, done.stderr
        [journal] = folder.glob("runs/*/*.journal")
        [found] = read_journal(journal)
        results = [json.loads(file.read_text()) for file in folder.glob("runs/*/*/seed*/result.json")]
        return {
            "trials": [(trial.number, trial.drawn, trial.curve, str(trial.state)) for trial in found.trials],
            "weights": {result["id"]: result["weights"] for result in results},
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
