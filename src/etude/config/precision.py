"""What `precision=auto` stands for on this machine. The frozen config, and so the run's identity, has the answer."""

import shutil
import subprocess
from functools import cache

_PATIENCE = 10.0  # seconds for nvidia-smi
_AMPERE = 8.0  # the compute capability from which on a GPU multiplies bfloat16


def choose_precision(asked: str, accelerator: str) -> str:
    """The precision that is asked for; of "auto" bf16-mixed on a GPU that has it, 32-true elsewhere.

    A GPU may lie on a machine other than the one that asks, as behind SLURM: there, name the precision.
    """
    if asked != "auto":
        return asked
    return "bf16-mixed" if accelerator in ("auto", "gpu", "cuda") and _gpus_have_bf16() else "32-true"


@cache
def _gpus_have_bf16() -> bool:
    """Whether all GPUs of this machine do, asked without PyTorch, which takes seconds to import."""
    if not shutil.which("nvidia-smi"):
        return False
    command = ["nvidia-smi", "--query-gpu=compute_cap", "--format=csv,noheader"]
    try:
        said = subprocess.run(command, capture_output=True, text=True, check=True, timeout=_PATIENCE).stdout.split()
        return bool(said) and all(float(capability) >= _AMPERE for capability in said)
    except (OSError, subprocess.SubprocessError, ValueError):
        return False
