"""What `precision=auto` stands for on this machine. The frozen config, and so the run's identity, has the answer."""

import os
import shutil
import subprocess
from functools import cache
from importlib.metadata import version

from etude.errors import UserError

_PATIENCE = 10.0  # seconds for nvidia-smi
_AMPERE = 8.0  # the compute capability from which on a GPU multiplies bfloat16


def choose_precision(asked: str, accelerator: str) -> str:
    """The precision that is asked for; of "auto" bf16-mixed on GPUs that have it, 32-true elsewhere.

    A GPU may lie on a machine other than the one that asks, as behind SLURM: there, name the precision.

    Raises:
        UserError: "auto" is asked for, and nobody can tell what the GPUs have.
    """
    if asked != "auto":
        return asked
    has_gpus = accelerator in ("auto", "gpu", "cuda") and shutil.which("nvidia-smi") and "+cpu" not in version("torch")
    return "bf16-mixed" if has_gpus and _gpus_have_bf16(os.environ.get("CUDA_VISIBLE_DEVICES")) else "32-true"


@cache
def _gpus_have_bf16(visible: str | None) -> bool:
    """Whether the `visible` GPUs do, None: all, asked without PyTorch, which takes seconds to import."""
    if visible is not None and not visible.strip():
        return False
    command = ["nvidia-smi", "--query-gpu=compute_cap", "--format=csv,noheader", *(["-i", visible] if visible else [])]
    try:
        said = subprocess.run(command, capture_output=True, text=True, check=True, timeout=_PATIENCE).stdout.split()
        return bool(said) and all(float(capability) >= _AMPERE for capability in said)
    except (OSError, subprocess.SubprocessError, ValueError) as error:
        raise UserError(
            "precision=auto: nvidia-smi does not say what the GPUs here can do; name it, such as precision=bf16-mixed"
        ) from error
