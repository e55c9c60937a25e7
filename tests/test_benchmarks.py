"""The benchmarks keep up with the code that they measure."""

import re
import runpy
import subprocess
import sys
from pathlib import Path

import pytest

BENCHMARKS = Path(__file__).parents[1] / "benchmarks"


@pytest.mark.parametrize("file", sorted(BENCHMARKS.glob("*.py")), ids=lambda file: file.stem)
def test_a_benchmark_can_be_loaded_and_builds_its_models(file: Path) -> None:
    names = runpy.run_path(str(file), run_name="loaded")
    for builder in ("ours", "HandWired", "random_transformer"):
        if builder in names and file.stem in ("training", "decoding"):
            arguments = [False] if builder == "HandWired" else []
            assert sum(parameter.numel() for parameter in names[builder](*arguments).parameters()) > 1_000_000


@pytest.mark.slow
def test_what_the_harness_adds_to_a_step_is_measured(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    names = runpy.run_path(str(BENCHMARKS / "steps.py"), run_name="loaded")
    small = ["model.d_model=16", "model.heads=2", "model.n_layers=1", "budget.pairs=2000"]
    monkeypatch.setattr(sys, "argv", ["steps.py", *small])
    names["main"].__globals__.update(STEPS=3, TURNS=1)
    names["main"]()
    assert re.search(r"ratio +\d+\.\d{3}", capsys.readouterr().out)


@pytest.mark.slow
def test_what_measures_a_gpu_runs_on_a_processor_too() -> None:
    small = ["--models", "base", "--scale=pocket", "--tokens=50", "--sentences=1", "--rounds=1", "--matrix=64"]
    command = [sys.executable, str(BENCHMARKS / "gpu.py"), "--device=cpu", *small, "--together=1", "--window=0.5"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=300)
    assert done.returncode == 0, done.stderr
    for told in (r"[1-9]\d* target tokens/s", r"\d sentences of 25", r"[1-9]\d* steps/s"):
        assert re.search(told, done.stdout), done.stdout
