"""Hydra's Optuna sweeper drives `etude train -m` by the objective that each run returns."""

import os
import subprocess
import sys
import venv
from pathlib import Path

import pytest
import yaml

from etude.store.run_dir import RunDir

SMALL = ["budget=smoke", "logger=none", "data.train_pairs=300", "data.valid_pairs=20", "data.test_pairs=8"]


@pytest.fixture(scope="module")
def python(tmp_path_factory) -> Path:
    """An environment of its own, for the sweeper needs an optuna below 3; all else is lent to it."""
    folder = tmp_path_factory.mktemp("optuna")
    venv.create(folder)
    [packages] = (folder / "lib").glob("python*/site-packages")
    (packages / "lent.pth").write_text("\n".join(path for path in sys.path if path.endswith("site-packages")))
    program = folder / "bin" / "python"
    pip = [sys.executable, "-m", "pip", "--python", str(program)]  # a pip of its own would take seconds
    install = [*pip, "install", "--quiet", "--retries", "1", "hydra-optuna-sweeper"]
    try:
        done = subprocess.run(install, capture_output=True, text=True, timeout=300)
    except subprocess.TimeoutExpired:
        pytest.skip("pip could not install hydra-optuna-sweeper in five minutes")
    if done.returncode:
        pytest.skip(f"pip could not install hydra-optuna-sweeper: {done.stderr.strip().splitlines()[-1]}")
    return program


@pytest.mark.slow
def test_optuna_finds_the_best_of_what_the_runs_return(python, tmp_path):
    search = ["hydra/sweeper=optuna", "hydra.sweeper.direction=minimize", "hydra.sweeper.n_trials=4"]
    search += ["hydra.sweeper.n_jobs=2", "budget.lr_factor=interval(0.1,4)", "data.vocab_size=300"]
    paths = [str(Path(__file__).parents[1] / "src"), os.environ.get("PYTHONPATH", "")]
    environment = os.environ | {"ETUDE_CACHE": str(tmp_path / "cache"), "PYTHONPATH": os.pathsep.join(paths)}
    command = [str(python), "-m", "etude", "train", "-m", *search, *SMALL]
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stdout + done.stderr
    runs = [RunDir(file.parent) for file in tmp_path.glob("runs/*/*/*/result.json")]
    found = {run.config()["budget"]["lr_factor"]: run.result()["valid"]["perplexity"] for run in runs}
    assert len(found) == 4
    best = yaml.safe_load((tmp_path / "runs/.multirun/optimization_results.yaml").read_text())
    assert best["best_value"] == min(found.values()) == found[best["best_params"]["budget.lr_factor"]]
