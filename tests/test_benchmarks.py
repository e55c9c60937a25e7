"""The benchmarks keep up with the code that they measure."""

import importlib.util
import json
import re
import runpy
import subprocess
import sys
from pathlib import Path

import pytest
import torch

BENCHMARKS = Path(__file__).parents[1] / "benchmarks"


@pytest.fixture(autouse=True)
def beside(monkeypatch: pytest.MonkeyPatch) -> None:
    """The scripts import each other, as they can where they are run."""
    monkeypatch.syspath_prepend(str(BENCHMARKS))


@pytest.mark.parametrize("file", sorted(BENCHMARKS.glob("*.py")), ids=lambda file: file.stem)
def test_a_benchmark_can_be_loaded(file: Path) -> None:
    assert "main" in runpy.run_path(str(file), run_name="loaded") or file.stem in ("parts", "turns")


def run(script: str, *words: str) -> str:
    command = [sys.executable, str(BENCHMARKS / script), *words]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=300)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_everybody_trains_on_the_same_tokens_and_learns() -> None:
    """Marian, too, where it is installed."""
    from peers.ours import Training as Ours
    from peers.torch_training import Training as TorchNN

    trained = [Ours(), TorchNN(), TorchNN(like_ours=True)]
    if importlib.util.find_spec("transformers"):
        from peers.marian import Training as Marian

        trained.append(Marian())
    first, *others = [[batch.target_out for batch in one.data] for one in trained]
    for other in others:
        assert all(map(torch.equal, first, other))
    for one in trained:
        one.data = one.data[:1]
        before = float(one.loss(one.data[0]))
        assert 8 < before < 12  # a little over ln 8000 = 8.99: the weights are random, the targets too
        for _ in range(3):
            assert one.round() > 0
        assert float(one.loss(one.data[0])) < before


def test_the_ratio_of_a_row_says_how_many_times_as_fast_we_are_round_by_round() -> None:
    from bench import ratios
    from parts import Row

    assert ratios(Row("", "peer", "tokens/s", [50.0, 40.0]), Row("", "étude", "tokens/s", [100.0, 60.0])) == [2.0, 1.5]
    assert ratios(Row("", "peer", "s", [3.0, 8.0]), Row("", "étude", "s", [2.0, 2.0])) == [1.5, 4.0]


@pytest.mark.slow
def test_a_part_is_measured_in_turns_and_kept_beside_those_measured_before(tmp_path: Path) -> None:
    kept = tmp_path / "bench.json"
    said = run("bench.py", "--only=pipeline,decoding", "--rounds=1", "--threads=1", f"--json={kept}")
    assert re.search(r"pipeline.*étude train +\d.*steps/s", said)
    assert re.search(r"the bare step +[\d.]+ .*steps/s +\d\.\d\d \(", said)
    for peer in ("HF Marian generate", "CTranslate2, fp32", "CTranslate2, int8"):
        assert re.search(rf"{peer} +([\d.]+ .*sentences/s +\d+\.\d\d|not installed: \w+)", said)
    again = run("bench.py", "--only=starting", "--rounds=1", "--threads=1", f"--json={kept}")
    assert "the bare step" in again
    assert re.search(r"bare script +[\d.]+ .* s +\d+\.\d\d", again)
    assert json.loads(kept.read_text())["machine"]["versions"]["torch"]


@pytest.mark.slow
def test_a_large_corpus_is_held_against_a_small_one() -> None:
    said = run("corpora.py", "--pairs", "6000", "12000", "--rounds=1", "--steps=5")
    assert re.search(r"6,000 pairs, \d+ MB: opened in [\d.]+ ms", said)
    assert re.search(r"12,000 pairs: [\d.]+ ms a step, \d\.\d+ .* of the smallest", said)


@pytest.mark.slow
def test_what_measures_a_gpu_runs_on_a_processor_too() -> None:
    small = ["--models", "base", "--scale=pocket", "--tokens=50", "--sentences=1", "--rounds=1", "--matrix=64"]
    command = [sys.executable, str(BENCHMARKS / "gpu.py"), "--device=cpu", *small, "--together=1", "--window=0.5"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=300)
    assert done.returncode == 0, done.stderr
    training, hours = r"[1-9]\d* target tokens/s", r"Table 3, 20 arms: [\d,.]+ hours a seed"
    for told in (training, hours, r"\d sentences of 25", r"[1-9]\d* steps/s"):
        assert re.search(told, done.stdout), done.stdout
