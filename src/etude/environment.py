"""Where a run was made: versions, the state of the code, the hardware."""

import os
import platform
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path
from typing import Any

_PACKAGES = (
    "etude",
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


def environment() -> dict[str, Any]:
    """Versions, git commit (and whether it was changed), and the machine's processors."""
    import torch

    return {
        "python": sys.version.split()[0],
        "packages": {name: version(name) for name in _PACKAGES},
        "git": _git(),
        "platform": platform.platform(),
        "cpu": _cpu(),
        "cpus": os.cpu_count(),
        "threads": torch.get_num_threads(),
        "gpus": [torch.cuda.get_device_name(i) for i in range(torch.cuda.device_count())],
    }


def _git() -> dict[str, Any] | None:
    """The checkout that the code runs from; None from an installed wheel."""
    here = Path(__file__).resolve().parent
    try:
        commit = _output("git", "-C", str(here), "rev-parse", "HEAD")
        changed = bool(_output("git", "-C", str(here), "status", "--porcelain", "--untracked-files=no"))
    except (OSError, subprocess.CalledProcessError):
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
