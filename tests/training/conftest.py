import csv
import json
import socket
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
import yaml
from tests import warm
from tests.letters import ROWS, TEXT, TINY, write_pairs

from etude.config.compose import compose
from etude.config.freeze import freeze
from etude.store.run_dir import RunDir
from etude.tasks import build
from etude.trained.checkpoint import read_checkpoint
from etude.trained.weights import final_weights
from etude.training.run import train

Freeze = Callable[..., RunDir]

TIMES = ("seconds", "tokens_per_second", "decoding_seconds")


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Freeze:
    """Freezes runs of ten steps, each in a folder of its own."""
    place = tmp_path_factory.mktemp("runs")
    lines = [*TEXT, write_pairs(place)]
    (place / "text.txt").write_text("".join(f"{row}.{'=' * (k % 5 == 0)}" for k, row in enumerate(ROWS)))
    running = ["data=text", f"data.files={place / 'text.txt'}", "data.separator='='", "tokenizer=byte"]

    def frozen(name: str, *overrides: str, searched: bool = True, is_running: bool = False) -> RunDir:
        folders = [f"runs_dir={place / name}", f"cache_dir={place / 'cache'}"]
        budget = ["budget=smoke", "budget.val_every=3"]
        search = ["decoding=greedy", "decoding.max_len_offset=2"] if searched else []
        text = running if is_running else lines
        return freeze(compose([*TINY, *text, *folders, *budget, *search, *overrides]))

    return frozen


@pytest.fixture
def importable(monkeypatch: pytest.MonkeyPatch) -> None:
    """The callbacks of `together.py`, here and in the processes."""
    monkeypatch.syspath_prepend(str(Path(__file__).parent))
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parent), prepend=":")


def found(run: RunDir) -> dict[str, Any]:
    """All that a finished run found, to the last bit, but for how long it took."""
    checkpoint = read_checkpoint(run.checkpoint)
    with run.metrics_file.open(newline="") as file:
        rows = [{k: v for k, v in row.items() if k not in TIMES} for row in csv.DictReader(file)]
    # Which files of the working folder are loaded is another matter in pytest than in a process of the run's own.
    result = {k: v for k, v in run.result().items() if k not in (*TIMES, "own_files")}
    moments = checkpoint["optimizer_states"][0]["state"]
    return {
        "weights": {name: tuple(value.flatten().tolist()) for name, value in checkpoint["state_dict"].items()},
        "moments": [{k: tuple(torch.as_tensor(v).flatten().tolist()) for k, v in s.items()} for s in moments.values()],
        "metrics": rows,
        "result": json.loads(json.dumps(result)),
        "hypotheses": run.hypotheses_file.read_text() if run.hypotheses_file.is_file() else "",
    }


def killed_at(
    step: int, run: RunDir, monkeypatch: pytest.MonkeyPatch, *, writer: str = "ProgressFile", row_of: str = "step"
) -> None:
    """Train until a writer of metrics is given the row of a step: the first with the column `row_of`."""

    class Killed(BaseException):
        pass

    def die(self: object, row: dict[str, Any]) -> None:
        if row["step"] == step and row_of in row:
            raise Killed

    with monkeypatch.context() as patched:
        patched.setattr(f"etude.training.metrics_writers.{writer}.write", die)
        with pytest.raises(Killed):
            train(run)


def same(one: dict[str, torch.Tensor], other: dict[str, torch.Tensor]) -> bool:
    return one.keys() == other.keys() and all(torch.equal(one[name], other[name]) for name in one)


def with_plain_descent(run: RunDir) -> RunDir:
    """The run, whose steps are now the gradients themselves: Adam would turn rounding into steps of full length."""
    config = run.config()
    config["optimizer"] = {"_target_": "torch.optim.SGD", "_partial_": True, "lr": 1.0}
    config["schedule"] |= {"warmup_steps": 1, "factor": config["model"]["d_model"] ** 0.5}
    run.config_file.write_text(yaml.safe_dump(config))
    return run


def update(run: RunDir) -> dict[str, torch.Tensor]:
    """How far the weights moved."""
    config = run.config()
    torch.manual_seed(config["seed"])
    before = build.model(config, build.token_store(config).vocab_size).state_dict()
    return {name: weight - before[name] for name, weight in final_weights(run, config).items()}


def distance(one: dict[str, torch.Tensor], other: dict[str, torch.Tensor]) -> float:
    """Relative to the length of the update itself."""
    apart, length = (sum(float(t.double().square().sum()) for t in d) for d in (_minus(one, other), one.values()))
    return (apart / length) ** 0.5


def _minus(one: dict[str, torch.Tensor], other: dict[str, torch.Tensor]) -> list[torch.Tensor]:
    return [one[name] - other[name] for name in one]


def in_processes(run: RunDir) -> subprocess.CompletedProcess[str]:
    """Train a run in processes of its own, one for each device, with the environment that torchrun would give them."""
    devices = run.config()["trainer"]["devices"]
    return warm.run(warm.TRAINING, run.path, ranks=cluster(devices) if devices > 1 else [{}])


def cluster(devices: int = 1, machines: int = 1) -> list[dict[str, str]]:
    """The environments that torchrun would give to the processes of some machines."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    common = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port, "TORCHELASTIC_RUN_ID": "one"}
    common |= {"WORLD_SIZE": devices * machines, "LOCAL_WORLD_SIZE": devices}
    own = [
        {"RANK": rank, "LOCAL_RANK": rank % devices, "GROUP_RANK": rank // devices}
        for rank in range(devices * machines)
    ]
    return [{key: str(value) for key, value in (common | each).items()} for each in own]
