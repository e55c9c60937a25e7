import logging
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

import hydra
import pytest
from hydra.core.global_hydra import GlobalHydra

import etude.config.freeze
from etude.config.compose_cache import ConfigCache
from etude.config.resolvers import register
from etude.errors import UserError
from etude.paths import shipped
from etude.store.run_dir import RunDir
from hydra_plugins import etude_launchers

Launched = list[tuple[list[str], dict[str, Any]]]
Launch = Callable[..., Launched]


@pytest.fixture
def launch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Launch]:
    """Types `etude train -m WORDS` where submitit and Ray are installed and run nothing; gives what they would run."""
    launched: Launched = []

    def freeze_all(jobs: Iterable[Sequence[str]], configs: ConfigCache, *told: object) -> list[RunDir]:
        found = [configs.resolve(overrides, check=False).config for overrides in jobs]
        return [RunDir(tmp_path / f"{config['arm']}{config['seed']}") for config in found]

    def run(runs: Sequence[RunDir], **how: Any) -> None:
        launched.append(([run.path.name for run in runs], how))

    def typed(*words: str) -> Launched:
        monkeypatch.setattr(sys, "argv", ["etude train", "-m", *words])
        hydra.main(config_path=str(shipped("conf")), config_name="train", version_base="1.3")(lambda config: None)()
        return launched

    for name, function in (("slurm", "run_as_jobs"), ("ray", "run_as_tasks")):
        module = ModuleType(f"etude.launch.{name}")
        setattr(module, function, run)
        monkeypatch.setitem(sys.modules, module.__name__, module)
    register()
    monkeypatch.setattr(etude_launchers, "find_spec", lambda name: name)
    monkeypatch.setattr(etude.config.freeze, "freeze_all", freeze_all)
    monkeypatch.setattr(logging.getLogger(), "handlers", [])
    monkeypatch.setenv("HYDRA_FULL_ERROR", "1")
    monkeypatch.chdir(tmp_path)
    yield typed
    GlobalHydra.instance().clear()


def test_slurm_gets_every_frozen_run_at_once_and_what_the_command_line_says_of_jobs(launch: Launch) -> None:
    words = [
        "partition=gpu",
        "timeout_min=60",
        'setup=["module load cuda"]',
        "additional_parameters={reservation: friday}",
    ]
    ((runs, how),) = launch(
        "experiment=table3/base,table3/A1",
        "seed=1,2",
        "hydra/launcher=submitit_slurm",
        *(f"hydra.launcher.{word}" for word in words),
        "+hydra.launcher.qos=high",
    )
    assert runs == ["base1", "base2", "A11", "A12"]
    assert (how["cluster"], how["partition"], how["timeout_min"], how["qos"]) == ("slurm", "gpu", 60, "high")
    assert (how["setup"], how["additional_parameters"]) == (["module load cuda"], {"reservation": "friday"})
    assert type(how["setup"]) is list
    assert how["submitit_folder"] == "runs/.multirun/submitit/%j"


def test_local_jobs_are_configured_as_those_of_slurm(launch: Launch) -> None:
    for name in ("slurm", "local"):
        launched = launch("seed=1", f"hydra/launcher=submitit_{name}")
    (_, slurm), (_, local) = launched
    assert (slurm.pop("cluster"), local.pop("cluster")) == ("slurm", "local")
    assert slurm == local


def test_ray_gets_every_frozen_run_at_once_and_what_the_command_line_says_of_it(launch: Launch) -> None:
    words = ["hydra.launcher.num_gpus=0.5", "hydra.launcher.init.address=auto", "+hydra.launcher.init.num_cpus=8"]
    ((runs, how),) = launch("seed=1,2", "hydra/launcher=ray", *words)
    assert runs == ["base1", "base2"]
    quiet = {"include_dashboard": False, "log_to_driver": False, "logging_level": "warning"}
    init = {"address": "auto", "num_cpus": 8} | quiet
    assert how == {"init": init, "num_cpus": 1, "num_gpus": 0.5, "max_retries": 3, "fail_fast": False}
    assert type(how["init"]) is dict


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("ray", r"hydra/launcher=ray needs Ray: pip install 'etude\[ray\]'"),
        ("submitit_slurm", r"hydra/launcher=submitit_slurm needs submitit: pip install 'etude\[slurm\]'"),
    ],
)
def test_a_package_that_is_not_installed_is_told_before_anything_is_composed(
    name: str, told: str, launch: Launch, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(etude_launchers, "find_spec", lambda name: None)
    with pytest.raises(UserError, match=told):
        launch("seed=1", f"hydra/launcher={name}")


def test_what_hydra_imports_at_every_start_is_light() -> None:
    program = (
        "import sys; from hydra.core.plugins import Plugins; Plugins.instance();"
        "assert 'hydra_plugins.etude_launchers' in sys.modules;"
        "print({'submitit', 'ray', 'torch', 'rich', 'etude.launch'} & set(sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == "set()\n"
