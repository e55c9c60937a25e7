"""Record the environment of a run: versions, the state of the code, the hardware."""

import os
import platform
import subprocess
import sys
from collections.abc import Mapping
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from etude import __version__
from etude.store.results_version import record_code

_LIBRARIES = "torch lightning hydra-core omegaconf sentencepiece sacrebleu sacremoses numpy wandb"
_DECISIVE = ("torch", "matmul", "lightning", "sentencepiece", "sacrebleu")


def environment(config: Mapping[str, Any]) -> dict[str, Any]:
    """Return the code, versions, git commit (and whether files were modified), CPU and GPUs for the run of a config."""
    import torch

    return {
        **record_code(config),
        "python": sys.version.split()[0],
        "packages": {"etude": __version__} | {name: installed_version(name) for name in _LIBRARIES.split()},
        "git": _git(),
        "platform": platform.platform(),
        "cpu": _cpu(),
        "cpus": os.cpu_count(),
        "threads": torch.get_num_threads(),
        "gpus": [torch.cuda.get_device_name(i) for i in range(torch.cuda.device_count())],
    }


def libraries_of(made: Mapping[str, Any], begun: Mapping[str, Any]) -> dict[str, str]:
    """Return the versions of the libraries that affect the rounding of a result, in the order in which they were used.

    `matmul` is how matrices were multiplied, see `trainer.matmul`.

    Args:
        made: the environment in which the run is finished or goes on.
        begun: the environment in which it was left, with the libraries of all before; empty if it was begun in `made`.
    """
    now, last = ((one.get("packages") or {}) | {"matmul": one.get("matmul")} for one in (made, begun))
    before = begun.get("libraries") or last
    versions = {name: [*(before.get(name) or "").split(", "), now.get(name)] for name in _DECISIVE}
    return {name: ", ".join(filter(None, dict.fromkeys(found))) for name, found in versions.items()}


def installed_version(library: str) -> str | None:
    """Return the version of a library; None if it is not installed."""
    try:
        return version(library)
    except PackageNotFoundError:
        return None


def _git() -> dict[str, Any] | None:
    """Return commit and state of the checkout that the code runs from; None without a checkout or without git."""
    git = ("git", "-C", str(Path(__file__).resolve().parent))
    commit, changed = output_of(*git, "rev-parse", "HEAD"), output_of(*git, "status", "--porcelain", "-uno")
    return None if commit is None or changed is None else {"commit": commit, "changed": bool(changed)}


def output_of(*command: str) -> str | None:
    """Return what a program prints; None if it is missing, fails or does not answer in time."""
    try:
        return subprocess.run(command, check=True, capture_output=True, text=True, timeout=10).stdout.strip()
    except (OSError, subprocess.SubprocessError):
        return None


def _cpu() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return platform.processor()
    return next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), "")
