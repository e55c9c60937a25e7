"""The benchmarks keep up with the code that they measure."""

import importlib.util
import json
import re
import runpy
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
from tests import warm

from etude.config.compose import compose
from etude.config.resolve import resolve
from etude.paths import shipped

BENCHMARKS = Path(__file__).parents[1] / "benchmarks"


@pytest.fixture(autouse=True)
def beside(monkeypatch: pytest.MonkeyPatch) -> None:
    """The scripts import each other, as they can where they are run."""
    monkeypatch.syspath_prepend(str(BENCHMARKS))


@pytest.mark.parametrize("file", sorted(BENCHMARKS.glob("*.py")), ids=lambda file: file.stem)
def test_a_benchmark_can_be_loaded(file: Path) -> None:
    assert "main" in runpy.run_path(str(file), run_name="loaded") or file.stem in ("parts", "steps", "turns")


def run(script: str, *words: str) -> str:
    command = [warm.python(), str(BENCHMARKS / script), *words]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=300)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_everybody_trains_on_the_same_tokens_and_learns(monkeypatch: pytest.MonkeyPatch) -> None:
    """Marian, too, where it is installed."""
    monkeypatch.setattr("peers.trained.TOKENS", 500)
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


def test_like_for_like_is_the_same_library_of_products_too(monkeypatch: pytest.MonkeyPatch) -> None:
    from peers import torch_training

    asked = []
    monkeypatch.setattr(torch_training, "choose_matmul", lambda *words: asked.append(words[0]))
    torch_training.Training()
    assert not asked
    torch_training.Training(like_ours=True)
    assert asked == [resolve(compose([]))["trainer"]["matmul"]]


MADE_UP = """
import os

class Steady:
    def round(self): return 2.0

class Broken:
    def __init__(self): raise ValueError("no such size")

class Failing(Steady):
    rounds = 0
    def round(self):
        self.rounds += 1
        if self.rounds == 3: raise MemoryError("in the second that counts")
        return 3.0

class Killed(Failing):
    def round(self):
        self.rounds += 1
        return 3.0 if self.rounds < 3 else os._exit(9)

class Absent:
    def __init__(self): import no_such_peer
"""


def test_a_peer_that_fails_has_a_row_that_says_why_and_costs_nobody_else_theirs(tmp_path: Path) -> None:
    (tmp_path / "turns.py").write_text((BENCHMARKS / "turns.py").read_text())
    (tmp_path / "peers").mkdir()
    (tmp_path / "peers" / "made_up.py").write_text(MADE_UP)
    turns = runpy.run_path(str(tmp_path / "turns.py"), run_name="turns")
    names = ("Broken", "Failing", "Killed", "Absent", "Steady")
    assert turns["rates_in_turns"]({name: (f"made_up:{name}", {}) for name in names}, rounds=3, threads=1) == {
        "Broken": "failed: ValueError: no such size",
        "Failing": "failed: MemoryError: in the second that counts",
        "Killed": "failed",
        "Absent": "not installed: no_such_peer",
        "Steady": [2.0, 2.0, 2.0],
    }
    second = "import sys; {round} and sys.exit('in the second')"
    commands = {"well": [sys.executable, "-c", ""], "ill": [sys.executable, "-c", second]}
    found = turns["seconds_in_turns"](commands, rounds=2, threads=1)
    assert found["ill"] == "failed: in the second"
    assert len(found["well"]) == 2


@pytest.mark.parametrize("failed", [["MKL"], ["MKL", "oneDNN"]])
def test_there_is_no_share_of_a_peak_that_was_not_measured(failed: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    import parts

    def rates(peers: dict[str, Any], rounds: int, threads: int) -> dict[str, Any]:
        return {name: "failed" if name in failed else [100.0] for name in peers}

    monkeypatch.setattr(parts, "rates_in_turns", rates)
    rows = {row.who: row for row in parts.training(1, 1)}
    assert rows["MKL"].figures == "failed"
    assert (rows["étude"].share is None) == (len(failed) == 2)


def test_what_was_measured_stays_where_a_later_part_fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import bench

    def well(rounds: int, threads: int) -> list[Any]:
        return [bench.Row("well", "étude", "s", [1.0] * rounds)]

    def ill(rounds: int, threads: int) -> list[Any]:
        raise OSError("no space left")

    kept = tmp_path / "bench.json"
    monkeypatch.setattr(bench, "PARTS", {"well": well, "ill": ill})
    monkeypatch.setattr(sys, "argv", ["bench.py", "--rounds=2", f"--json={kept}"])
    with pytest.raises(OSError, match="no space left"):
        bench.main()
    assert [row["figures"] for row in json.loads(kept.read_text())["rows"]] == [[1.0, 1.0]]


def write_small_corpus(folder: Path) -> None:
    """What is prepared where one stands: the shipped corpus, of a few hundred sentences."""
    text = (shipped("conf") / "data/grammar.yaml").read_text(encoding="utf-8")
    (folder / "conf/data").mkdir(parents=True)
    (folder / "conf/data/grammar.yaml").write_text(re.sub(r"_pairs: \S+", "_pairs: 300", text).replace("2000", "300"))


@pytest.mark.slow
def test_a_part_is_measured_in_turns_and_kept_beside_those_measured_before(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    import bench
    import parts

    monkeypatch.chdir(tmp_path)
    write_small_corpus(tmp_path)
    kept = tmp_path / "bench.json"
    monkeypatch.setattr(parts, "STEPS", 10)
    monkeypatch.setattr(parts, "SMALL_STEPS", 2)
    monkeypatch.setenv("ETUDE_BENCH_SENTENCES", "5")
    monkeypatch.setattr(parts, "ETUDE", [str(warm.python()), "-m", "etude"])  # whose start is not timed here
    monkeypatch.setattr(sys, "executable", str(warm.python()))  # that of the peers

    def measure(only: str) -> str:
        monkeypatch.setattr(sys, "argv", ["bench.py", f"--only={only}", "--rounds=1", "--threads=1", f"--json={kept}"])
        bench.main()
        return capsys.readouterr().out

    said = measure("pipeline,decoding")
    assert re.search(r"pipeline.*étude train +\d.*steps/s", said)
    assert len(re.findall(r"the bare step +[\d.]+ .*steps/s +\d\.\d\d \(", said)) == 2
    for peer in ("HF Marian generate", "CTranslate2, fp32", "CTranslate2, int8"):
        assert re.search(rf"{peer} +([\d.]+ .*sentences/s +\d+\.\d\d|not installed: \w+)", said)
    again = measure("starting")
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
    said = run("gpu.py", "--device=cpu", *small, "--together=1", "--window=0.5")
    training, hours = r"[1-9]\d* target tokens/s", r"Table 3, 20 arms: [\d,.]+ hours a seed"
    for told in (training, hours, r"\d sentences of 25", r"[1-9]\d* steps/s"):
        assert re.search(told, said), said


@pytest.mark.slow
def test_a_profile_shares_a_steps_time_out_among_kinds_of_work() -> None:
    small = ["--models", "base", "--scale=pocket", "--tokens=50", "--rounds=1"]
    said = run("gpu.py", "--profile", "--device=cpu", *small)
    shares = re.findall(r"^ +(\d+)%  ([a-z ]+)$", said, re.MULTILINE)
    assert {kind for _, kind in shares} == {
        *("attention", "products of matrices", "loss", "optimizer", "copies and types", "element by element")
    }
    assert sum(int(share) for share, _ in shares) == pytest.approx(100, abs=3)
