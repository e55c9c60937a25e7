import subprocess
import sys

import pytest

from etude.errors import UserError
from hydra_plugins import etude_launchers

from .conftest import Launch


def test_slurm_gets_every_frozen_run_at_once_and_what_the_command_line_says_of_jobs(launch: Launch) -> None:
    words = [
        "partition=gpu",
        "timeout_min=60",
        'setup=["module load cuda"]',
        "additional_parameters={reservation: friday}",
    ]
    launched = launch(
        "experiment=table3/base,table3/A1",
        "seed=1,2",
        "hydra/launcher=submitit_slurm",
        *(f"hydra.launcher.{word}" for word in words),
        "+hydra.launcher.qos=high",
    )
    how = launched.how
    assert launched.names == ["base1", "base2", "A11", "A12"]
    assert (how["cluster"], how["partition"], how["timeout_min"], how["qos"]) == ("slurm", "gpu", 60, "high")
    assert (how["setup"], how["additional_parameters"]) == (["module load cuda"], {"reservation": "friday"})
    assert type(how["setup"]) is list
    assert how["submitit_folder"] == "runs/.multirun/submitit/%j"


def test_local_jobs_are_configured_as_those_of_slurm(launch: Launch) -> None:
    slurm, local = (launch("seed=1", f"hydra/launcher=submitit_{name}").how for name in ("slurm", "local"))
    assert (slurm.pop("cluster"), local.pop("cluster")) == ("slurm", "local")
    assert slurm == local


def test_ray_gets_every_frozen_run_at_once_and_what_the_command_line_says_of_it(launch: Launch) -> None:
    words = ["hydra.launcher.num_gpus=0.5", "hydra.launcher.init.address=auto", "+hydra.launcher.init.num_cpus=8"]
    launched = launch("seed=1,2", "hydra/launcher=ray", *words)
    assert launched.names == ["base1", "base2"]
    quiet = {"include_dashboard": False, "log_to_driver": False, "logging_level": "warning"}
    init = {"address": "auto", "num_cpus": 8} | quiet
    assert launched.how == {"init": init, "num_cpus": 1, "num_gpus": 0.5, "max_retries": 3, "fail_fast": False}
    assert type(launched.how["init"]) is dict


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
