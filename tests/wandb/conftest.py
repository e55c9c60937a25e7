"""The real W&B client against a server that stands in for W&B's, on this machine."""

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.request import Request, urlopen

import pytest
import yaml
from tests import warm

import wandb
from etude.files import write_json
from etude.store.run_dir import RunDir
from etude.training.loggers import finish
from etude.training.loggers import wandb as wandb_logger
from etude.training.metrics_writers import LoggerSink

HERE = Path(__file__).parent


class Server:
    """A running stand-in."""

    def __init__(self, url: str) -> None:
        self.url = url

    def run(self, name: str = "") -> dict[str, Any]:
        """What has arrived of one run, the only one if none is named."""
        received: dict[str, Any] = json.load(urlopen(f"{self.url}/_received"))["runs"]
        nothing = {"history": [], "upserts": []}
        if not name and received:
            [nothing] = received.values()
        return received.get(name, nothing)

    def runs(self) -> list[str]:
        """The names of all runs."""
        return [*json.load(urlopen(f"{self.url}/_received"))["runs"]]

    def steps(self, name: str = "") -> list[int]:
        """The steps of a run whose training loss has arrived, as they lie in its history."""
        return [row["step"] for row in self.run(name)["history"] if "loss" in row]

    def outage(self, seconds: float) -> None:
        """Answer 503 for a while."""
        urlopen(Request(f"{self.url}/_outage?seconds={seconds}", method="POST"))

    def slow(self, seconds: float) -> None:
        """Answer so much later from now on, where the stand-in is a "slow" one."""
        urlopen(Request(f"{self.url}/_slow?seconds={seconds}", method="POST"))

    @staticmethod
    def until(true: Callable[[], Any], seconds: float = 60) -> None:
        """Wait until `true` gives something truthy."""
        deadline = time.monotonic() + seconds
        while not true():
            assert time.monotonic() < deadline, "waited in vain"
            time.sleep(0.05)


@pytest.fixture(autouse=True)
def service_ends_with_its_test() -> Iterator[None]:
    """Also where there is no server: a later test's processes would use the service that is left."""
    yield
    wandb.teardown()


def standin() -> str:
    """The script that stands in for W&B's server; without one, the test is skipped."""
    script = os.environ.get("ETUDE_WANDB_STANDIN") or str(HERE.parents[2] / "shared" / "tools" / "wandb_standin.py")
    if not Path(script).is_file():
        pytest.skip("needs a stand-in for W&B's server: set ETUDE_WANDB_STANDIN to its script")
    return script


@pytest.fixture(scope="session")
def programs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with `wandb` and `etude`, which are forks."""
    folder = tmp_path_factory.mktemp("bin")
    (folder / "client.py").write_text("from wandb.cli.cli import cli\n\ncli(prog_name='wandb')\n")
    for name, words in (("etude", "-m etude"), ("wandb", folder / "client.py")):
        (folder / name).write_text(f'#!/bin/sh\nexec {warm.python()} {words} "$@"\n')
        (folder / name).chmod(0o755)
    return folder


@pytest.fixture
def server(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch, programs: Path) -> Iterator[Server]:
    """A stand-in, and the environment that leads to it; as a parameter, one that "remembers" runs, or can be "slow"."""
    wrapped = {"remembers": [str(HERE / "remembering.py")], "slow": [str(HERE / "slow.py")]}
    command = [sys.executable, *wrapped.get(getattr(request, "param", ""), []), standin(), "0"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    assert process.stdout
    url = process.stdout.readline().strip()
    monkeypatch.setenv("PATH", str(programs), prepend=os.pathsep)
    monkeypatch.setenv("WANDB_BASE_URL", url)
    monkeypatch.setenv("WANDB_API_KEY", "0" * 40)
    monkeypatch.setenv("WANDB_ERROR_REPORTING", "false")
    monkeypatch.delenv("WANDB_MODE", raising=False)
    yield Server(url)
    wandb.teardown()
    process.kill()
    process.wait()


@pytest.fixture
def run(tmp_path: Path) -> RunDir:
    """A frozen run that has said where it runs, and what a run that has logged nothing looks like."""
    directory = RunDir(tmp_path / "runs" / "table3" / "A1" / "seed2-0123456789")
    directory.path.mkdir(parents=True)
    directory.config_file.write_text(yaml.safe_dump(CONFIG))
    write_json(directory.environment_file, {"python": "3.12.1", "packages": {"torch": "2.6.0"}, "results_version": 1})
    return directory


CONFIG: dict[str, Any] = {
    "study": "table3",
    "arm": "A1",
    "seed": 2,
    "budget": {"max_steps": 20, "lr_factor": 0.6},
    "model": {"heads": 1, "attention": {"bias": False}},
    "choices": {"scale": "pocket", "budget": "smoke", "model": "base", "data": "grammar", "experiment": None},
}


@pytest.fixture
def killed_after() -> Callable[..., None]:
    """A process that logs as training does, killed at a step: `killed_after(run, mode, step)`."""

    def kill(
        run: RunDir, mode: str, step: int, *, first: int = 1, seconds: float = 0, once: Callable[[], Any] = lambda: True
    ) -> None:
        command = [str(warm.python()), str(HERE / "logging_rows.py"), str(run.path), mode, str(first), str(step)]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        assert process.stdout
        assert json.loads(process.stdout.readline()) == {"logged": step}
        time.sleep(seconds)
        Server.until(once)
        process.kill()
        process.communicate()

    return kill


@pytest.fixture
def go_on() -> Callable[..., None]:
    """The rest of a run, from a checkpoint before step `first`, up to its success."""

    def log(run: RunDir, mode: Any, first: int, last: int, meanwhile: Callable[[int], Any] = lambda step: None) -> None:
        loggers = wandb_logger(run, run.config(), mode=mode, project="etude", entity=None)
        for step in range(first, last + 1):
            meanwhile(step)
            LoggerSink(loggers[0]).write({"step": step, "loss": 1 / step})
        finish(loggers, exit_code=0)

    return log
