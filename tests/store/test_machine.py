"""What a machine has is found without importing it, and what is missing comes with the way to get it."""

import re
import socket
from pathlib import Path

import pytest

from etude.paths import find_file
from etude.store import machine
from etude.store.machine import look_around, torch_version


@pytest.fixture
def bare(tmp_path, monkeypatch):
    """A machine without programs, and nobody logged in."""
    programs = tmp_path / "programs"
    programs.mkdir()
    monkeypatch.setenv("PATH", str(programs))
    monkeypatch.setenv("NETRC", str(tmp_path / "netrc"))
    for name in ("WANDB_API_KEY", "WANDB_BASE_URL"):
        monkeypatch.delenv(name, raising=False)

    def program(name, text):
        (programs / name).write_text(f"#!/bin/sh\n{text}\n")
        (programs / name).chmod(0o755)

    return program


def found(tmp_path):
    return {one.about: one for one in look_around(tmp_path / "runs", tmp_path / "cache", cores=3)}


def test_torch_is_named_as_it_names_itself():
    import torch

    cuda = f"CUDA {torch.version.cuda}" if torch.version.cuda else "without CUDA"
    assert torch_version() == f"torch {torch.__version__} ({cuda})"


def test_a_bare_machine_lacks_nothing_that_is_needed(bare, tmp_path):
    there = found(tmp_path)
    assert not any(one.broken for one in there.values())
    assert there["GPU"].found == "none: runs train on the processor"
    assert there["SLURM"].found == "none here"
    assert there["processor"].found.startswith("3 cores, ")
    assert "not logged in" in there["W&B"].found
    assert "wandb login" in there["W&B"].mend


def test_gpus_are_named(bare, tmp_path, monkeypatch):
    bare("nvidia-smi", "echo 'NVIDIA H100, 81559 MiB'; echo 'NVIDIA H100, 81559 MiB'")
    monkeypatch.setattr(machine, "torch_version", lambda: "torch 2.9.0 (CUDA 12.6)")
    assert found(tmp_path)["GPU"] == machine.Finding("GPU", "NVIDIA H100, 81559 MiB; NVIDIA H100, 81559 MiB")
    monkeypatch.setattr(machine, "torch_version", lambda: "torch 2.9.0 (without CUDA)")
    assert "built without CUDA" in found(tmp_path)["GPU"].mend


def test_a_driver_that_fails_is_told(bare, tmp_path):
    bare("nvidia-smi", "exit 9")
    assert found(tmp_path)["GPU"].mend == "look at nvidia-smi; until then, trainer=cpu"


def test_where_slurm_lacks_submitit_the_launcher_that_is_named_is_there(bare, tmp_path, monkeypatch):
    bare("sbatch", "echo slurm 23.11")
    monkeypatch.setattr(machine, "installed_version", lambda library: None)
    [launcher] = re.findall(r"hydra/launcher=(\w+)", found(tmp_path)["SLURM"].mend)
    assert find_file("conf", f"hydra/launcher/{launcher}.yaml").is_file()


def test_a_server_that_cannot_be_reached_is_named(bare, tmp_path, monkeypatch):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # bound and not listening: refuses
        monkeypatch.setenv("WANDB_API_KEY", "x" * 40)
        monkeypatch.setenv("WANDB_BASE_URL", f"http://127.0.0.1:{taken.getsockname()[1]}")
        assert "127.0.0.1 cannot be reached" in found(tmp_path)["W&B"].found
        taken.listen()
        assert found(tmp_path)["W&B"].found == "logged in; 127.0.0.1 answers"


def test_a_port_that_is_no_number_is_named(bare, tmp_path, monkeypatch):
    monkeypatch.setenv("WANDB_API_KEY", "x" * 40)
    monkeypatch.setenv("WANDB_BASE_URL", "http://localhost:abc")
    assert re.match(r"logged in; localhost cannot be reached \(Port could not", found(tmp_path)["W&B"].found)


def test_a_key_in_netrc_counts_as_logged_in(bare, tmp_path, monkeypatch):
    (tmp_path / "netrc").write_text("machine 127.0.0.1:9 login user password secret\n")
    monkeypatch.setenv("WANDB_BASE_URL", "http://127.0.0.1:9")
    there = found(tmp_path)["W&B"]
    assert there.found.startswith("logged in")
    assert "secret" not in str(there)


@pytest.mark.parametrize("machine", ["api.wandb.ai", "api.forge.coreweave.com"])
def test_a_key_for_a_server_of_wandbs_own_counts_as_logged_in(bare, tmp_path, machine):
    (tmp_path / "netrc").write_text(f"machine {machine} login user password secret\n")
    assert found(tmp_path)["W&B"].found.startswith("logged in")


def test_a_server_that_was_logged_in_to_is_found_with_its_port(bare, tmp_path, monkeypatch):
    """As `wandb login --host` writes it."""
    monkeypatch.setenv("WANDB_CONFIG_DIR", str(tmp_path))
    (tmp_path / "settings").write_text("[default]\nbase_url = http://127.0.0.1:9\n")
    assert "not logged in" in found(tmp_path)["W&B"].found
    (tmp_path / "netrc").write_text("machine 127.0.0.1:9 login user password secret\n")
    assert found(tmp_path)["W&B"].found.startswith("logged in; 127.0.0.1 cannot be reached")
    (tmp_path / "settings").write_text("[default\n")
    assert "not logged in" in found(tmp_path)["W&B"].found


def test_what_is_too_old_or_missing_is_broken_and_an_extra_is_not(bare, tmp_path, monkeypatch):
    asked = ["numpy>=999", "no-such-library>=1", "other-thing>=2; extra == 'other'", "torch>=2"]
    monkeypatch.setattr(machine, "requires", lambda name: asked)
    there = found(tmp_path)
    assert there["numpy"].broken
    assert there["numpy"].mend == "pip install 'numpy>=999'"
    assert there["no-such-library"].found == "missing"
    assert there["extra other"].mend == "pip install 'etude[other]', if wanted"
    assert not there["extra other"].broken


def test_a_folder_that_will_be_made_has_the_room_of_the_one_above(bare, tmp_path):
    assert found(tmp_path)["runs_dir"].found.startswith(f"{tmp_path / 'runs'}: ")
    assert not (tmp_path / "runs").exists()


def test_little_room_is_told(bare, tmp_path, monkeypatch):
    monkeypatch.setattr(machine, "_ROOM", 1e30)
    assert "runs_dir=DIR" in found(tmp_path)["runs_dir"].mend


def test_a_folder_that_cannot_be_written_is_broken(bare, tmp_path, monkeypatch):
    monkeypatch.setattr(machine.os, "access", lambda path, mode: Path(path) != tmp_path)
    assert found(tmp_path)["cache_dir"].broken
