"""Whole runs: as W&B's agents start them, and killed in the middle."""

import json
import re
import signal
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from etude.paths import shipped
from etude.store.metrics_file import read_metrics

SMALL = ["data=files", "data.tsv=pairs.tsv", "data.holdout=8", "tokenizer.vocab_size=40", "decoding.max_len_offset=5"]

pytestmark = pytest.mark.slow


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder with a small parallel text."""
    rows = [" ".join("abcdefgh"[k * j % 8] for j in range(1, 4 + k % 7)) + f" {k:o}" for k in range(1, 400)]
    (tmp_path / "pairs.tsv").write_text("".join(f"{row}\t{row}\n" for row in rows))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("ETUDE_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    return tmp_path


def typed(*words: str) -> str:
    """What a command says."""
    done = subprocess.run(words, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout + done.stderr


def test_an_agent_runs_a_sweep_to_its_end(server: Any, place: Path) -> None:
    content = yaml.safe_load((shipped("sweeps") / "smoke.yaml").read_text())
    content["command"] += SMALL
    (place / "smoke.yaml").write_text(yaml.safe_dump(content))
    [sweep] = re.findall(r"wandb agent (\S+)", typed("wandb", "sweep", "--project", "etude", "smoke.yaml"))
    typed("wandb", "agent", sweep)
    arms = {}
    for name in server.runs():
        run = server.run(name)
        arms[run["upserts"][0]["jobType"]] = json.loads(run["upserts"][-1]["config"])
        assert (run["complete"], run["exitcode"]) == (True, 0)
        assert run["upserts"][0]["groupName"] == "table3"
        assert run["upserts"][0]["sweep"] == sweep.rpartition("/")[2]
        assert server.steps(name) == list(range(1, 11))
        assert run["summary"]["test/perplexity"] > 1
    assert set(arms) == {"base", "A1"}
    assert len([*place.glob("runs/table3/*/*/result.json")]) == 2
    assert arms["A1"]["model"]["value"]["heads"] == 1
    assert arms["A1"]["budget"]["value"] == "smoke"  # the sweep's own word; the section is beside it
    assert arms["A1"]["budget.max_steps"]["value"] == 10


@pytest.mark.parametrize("server", ["remembers"], indirect=True)
def test_a_killed_training_goes_on_with_its_curve(server: Any, place: Path) -> None:
    words = ["train", *SMALL, "budget=smoke", "budget.max_steps=100", "budget.val_every=5", "logger.wandb.mode=online"]
    first = subprocess.Popen(["etude", *words], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    newest = "runs/.trainings/*/checkpoints/last.ckpt"
    server.until(lambda: [*place.glob(newest)] and any(map(server.steps, server.runs())))
    first.send_signal(signal.SIGKILL)
    first.wait()
    assert not [*place.glob("runs/*/*/*/result.json")], "it finished before it could be killed"
    assert "going on from step" in typed("etude", *words)
    [name] = server.runs()
    [metrics] = place.glob("runs/*/*/*/metrics.csv")
    rows = read_metrics(metrics)
    arrived = [(row["step"], row.get("loss"), row.get("valid_loss")) for row in server.run(name)["history"]]
    ours = [tuple(float(row[key]) if row[key] else None for key in ("step", "loss", "valid_loss")) for row in rows]
    assert [row for row in arrived if any(row[1:])] == ours
