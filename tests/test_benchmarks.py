"""The benchmarks keep up with the code that they measure."""

import runpy
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
