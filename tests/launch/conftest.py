import json
import logging
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import Any

import hydra
import pytest
from hydra.core.global_hydra import GlobalHydra
from omegaconf import DictConfig

import etude.config.freeze
import etude.launch.slots
from etude.config.compose_cache import ConfigCache
from etude.config.resolvers import register
from etude.errors import UserError
from etude.launch.resources import Slots
from etude.paths import shipped
from etude.store.run_dir import RunDir
from hydra_plugins import etude_launchers

FINISH = (
    "import json, pathlib, sys; part = pathlib.Path(sys.argv[1], 'result.part'); "
    "part.write_text(json.dumps({result})); part.rename(part.with_suffix('.json'))"
)


@pytest.fixture
def make_run(tmp_path: Path) -> Callable[..., RunDir]:
    """Fabricates a frozen run directory; `trainer` is what its config says under that key."""

    def make(arm: str, seed: int = 1, layers: int = 2, **trainer: Any) -> RunDir:
        path = tmp_path / "runs" / "table3" / arm / f"seed{seed}-0123abcd"
        path.mkdir(parents=True)
        config = {
            "model": {"n_layers": layers, "d_model": 8, "d_ff": 16},
            "budget": {"max_steps": 100},
            "trainer": {"accelerator": "auto", "devices": 1} | trainer,
            "choices": {},
        }
        (path / "config.yaml").write_text(f"{json.dumps(config)}\n")
        (path / "training.txt").write_text(f"{arm}-{seed}\n")
        return RunDir(path)

    return make


@pytest.fixture
def finish() -> str:
    """A child's program that finishes its run."""
    test = {"perplexity": 3.21, "bleu": 45.6}
    return FINISH.format(result={"test": test, "steps": 100, "parameters": 526_000, "finished": True})


@pytest.fixture
def programs() -> Callable[[dict[str, str]], Callable[[RunDir], Sequence[str]]]:
    """Turns programs by arm into the command that runs the arm's program with its directory as argument."""

    def command(by_arm: dict[str, str]) -> Callable[[RunDir], Sequence[str]]:
        return lambda run_dir: [sys.executable, "-c", by_arm[run_dir.path.parent.name], str(run_dir.path)]

    return command


@pytest.fixture
def soon() -> Callable[[Callable[[], bool]], bool]:
    """Whether something becomes true while a patient person watches."""

    def wait(true: Callable[[], bool]) -> bool:
        deadline = time.monotonic() + 30
        while not true() and time.monotonic() < deadline:
            time.sleep(0.02)
        return true()

    return wait


@pytest.fixture
def alive() -> Callable[[int], bool]:
    """Whether a process has not ended; a zombie has."""
    if not Path("/proc/self/status").exists():
        pytest.skip("needs /proc, to find processes")

    def is_alive(pid: int) -> bool:
        try:
            return "\nState:\tZ" not in Path(f"/proc/{pid}/status").read_text()
        except OSError:
            return False

    return is_alive


FAMILY = """
import os, signal, subprocess, sys, time
from pathlib import Path
if "stubborn" in sys.argv[1:]:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
sleep = [sys.executable, "-c", "import time; time.sleep(120)"]
near, far = subprocess.Popen(sleep), subprocess.Popen(sleep, start_new_session=True)
told = Path(sys.argv[1], "pids.part")
told.write_text(f"{os.getpid()} {near.pid} {far.pid}")
told.rename(told.with_suffix(""))
time.sleep(120)
"""


@pytest.fixture
def family() -> str:
    """A child's program with a child of its own, and one in another session as torchrun's are; it writes their ids."""
    return FAMILY


@dataclass
class Launched:
    """What a multirun froze, and what it would have run."""

    configs: list[DictConfig] = field(default_factory=list)
    runs: list[RunDir] = field(default_factory=list)
    slots: Slots = field(default_factory=Slots)
    how: dict[str, Any] = field(default_factory=dict)

    @property
    def names(self) -> list[str]:
        return [run.path.name for run in self.runs]


Launch = Callable[..., Launched]


@pytest.fixture
def launch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Launch]:
    """Types `etude train -m WORDS` in an empty folder, where submitit and Ray are installed; nothing is run at the end.

    Runs are named for their arm and seed.
    """
    launched = Launched()

    def freeze_all(jobs: Iterable[Sequence[str]], configs: ConfigCache, *told: object) -> list[RunDir]:
        launched.configs = [configs._compose(overrides) for overrides in jobs]
        if any(config.seed == 13 for config in launched.configs):
            raise UserError("seed=13 brings bad luck")
        return [RunDir(tmp_path / f"{config.arm}{config.seed}") for config in launched.configs]

    def run_side_by_side(runs: Sequence[RunDir], slots: Slots, **how: Any) -> None:
        launched.runs, launched.slots, launched.how = list(runs), slots, how

    def run_elsewhere(runs: Sequence[RunDir], **how: Any) -> None:
        launched.runs, launched.how = list(runs), how

    def task(config: DictConfig) -> None:
        raise AssertionError("in a sweep each run is a process of its own")

    def typed(*words: str) -> Launched:
        monkeypatch.setattr(sys, "argv", ["etude train", "-m", *words])
        hydra.main(config_path=str(shipped("conf")), config_name="train", version_base="1.3")(task)()
        return launched

    register()
    monkeypatch.setattr(etude.config.freeze, "freeze_all", freeze_all)
    monkeypatch.setattr(etude.launch.slots, "run_side_by_side", run_side_by_side)
    for name, function in (("slurm", "run_as_jobs"), ("ray", "run_as_tasks")):
        module = ModuleType(f"etude.launch.{name}")
        setattr(module, function, run_elsewhere)
        monkeypatch.setitem(sys.modules, module.__name__, module)
    monkeypatch.setattr(etude_launchers, "find_spec", lambda name: name)
    monkeypatch.setattr(logging.getLogger(), "handlers", [])
    monkeypatch.setenv("HYDRA_FULL_ERROR", "1")
    monkeypatch.chdir(tmp_path)
    yield typed
    GlobalHydra.instance().clear()
