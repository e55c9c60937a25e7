"""Where a run was made: versions, the state of the code, the hardware."""

import os
import platform
import subprocess
import sys
from collections.abc import Mapping
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from etude import __version__
from etude.runs.code import code_fingerprint

__all__ = ["code_fingerprint", "environment"]

_LIBRARIES = (
    "torch",
    "lightning",
    "hydra-core",
    "omegaconf",
    "sentencepiece",
    "sacrebleu",
    "sacremoses",
    "numpy",
    "wandb",
)
_DECISIVE = ("torch", "matmul", "lightning", "sentencepiece", "sacrebleu")


def environment(config: Mapping[str, Any]) -> dict[str, Any]:
    """The code that a run of this config depends on, versions, git commit (was it changed?), the machine's processors.

    `code` is a fingerprint: it stays the same where a commit changed nothing that the run can reach.
    """
    import torch

    return {
        "code": code_fingerprint(config),
        "python": sys.version.split()[0],
        "packages": {"etude": __version__} | {name: installed_version(name) for name in _LIBRARIES},
        "git": _git(),
        "platform": platform.platform(),
        "cpu": _cpu(),
        "cpus": os.cpu_count(),
        "threads": torch.get_num_threads(),
        "gpus": [torch.cuda.get_device_name(i) for i in range(torch.cuda.device_count())],
    }


def libraries_of(made: Mapping[str, Any], begun: Mapping[str, Any]) -> dict[str, str]:
    """The libraries that a result's last digits depend on, each with its versions in the order in which it met them.

    `matmul` is what multiplied matrices on a processor: see `trainer.matmul`.

    Args:
        made: the environment that it was finished in.
        begun: the one that its training was begun in; empty where that is the same.
    """
    met = [(one.get("packages") or {}) | {"matmul": one.get("matmul")} for one in (begun, made)]
    versions = {name: dict.fromkeys(libraries.get(name) for libraries in met) for name in _DECISIVE}
    return {name: ", ".join(filter(None, found)) for name, found in versions.items()}


def installed_version(library: str) -> str | None:
    """The version of a library; None where it runs from its sources and nobody has installed it."""
    try:
        return version(library)
    except PackageNotFoundError:
        return None


def _git() -> dict[str, Any] | None:
    """The checkout that the code runs from; None from an installed wheel, and where git does not answer."""
    here = Path(__file__).resolve().parent
    try:
        commit = _output("git", "-C", str(here), "rev-parse", "HEAD")
        changed = bool(_output("git", "-C", str(here), "status", "--porcelain", "--untracked-files=no"))
    except (OSError, subprocess.SubprocessError):  # no git, no checkout, or no answer in time
        return None
    return {"commit": commit, "changed": changed}


def _output(*command: str) -> str:
    return subprocess.run(command, check=True, capture_output=True, text=True, timeout=10).stdout.strip()


def _cpu() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return platform.processor()
    return next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), "")
