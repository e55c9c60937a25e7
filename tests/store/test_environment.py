"""What a run writes down of where it was made."""

import subprocess
from importlib.metadata import PackageNotFoundError

import pytest

from etude import __version__
from etude.store.environment import environment, libraries_of
from etude.store.own_parts import LIBRARIES
from etude.store.results_version import RESULTS_VERSION


def test_code_versions_and_hardware_are_recorded():
    config = {"loss": {"_target_": "etude.training.loss.LabelSmoothing"}}
    found = environment(config)
    assert found["results_version"] == RESULTS_VERSION
    assert {"python", "packages", "git", "platform", "cpu", "cpus", "threads", "gpus"} <= found.keys()
    assert {"etude", "torch", "lightning"} <= found["packages"].keys()


def test_a_library_whose_code_counts_has_its_version_recorded():
    recorded = {name.removesuffix("-core") for name in environment({})["packages"]}
    assert recorded >= LIBRARIES


def test_a_source_tree_that_is_not_installed_has_a_version_all_the_same(monkeypatch):
    def version(name):
        raise PackageNotFoundError(name)

    monkeypatch.setattr("etude.store.environment.version", version)
    packages = environment({})["packages"]
    assert packages["etude"] == __version__
    assert packages["torch"] is None


@pytest.mark.parametrize("error", [FileNotFoundError("git"), subprocess.TimeoutExpired("git", 10)])
def test_no_run_is_lost_for_a_git_that_is_missing_or_slow(error, monkeypatch):
    def run(*words, **how):
        raise error

    monkeypatch.setattr("etude.store.environment.subprocess.run", run)
    assert environment({})["git"] is None


def test_a_run_that_went_on_twice_names_every_version_that_it_was_made_with():
    def made_with(torch, begun):
        made = {"packages": {"torch": torch, "lightning": "2.6", "wandb": "0.31"}, "matmul": "mkl"}
        return made | {"libraries": libraries_of(made, begun)}

    first = made_with("2.11.0", {})
    assert first["libraries"]["torch"] == "2.11.0"
    assert "wandb" not in first["libraries"]
    third = made_with("2.13.0", made_with("2.12.0", first))
    assert third["libraries"]["torch"] == "2.11.0, 2.12.0, 2.13.0"
    assert (third["libraries"]["matmul"], third["libraries"]["sacrebleu"]) == ("mkl", "")
    assert made_with("2.13.0", third)["libraries"] == third["libraries"]
    assert made_with("2.12.0", {"packages": {"torch": "2.11.0"}})["libraries"]["torch"] == "2.11.0, 2.12.0", "of before"
