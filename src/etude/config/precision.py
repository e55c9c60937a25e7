"""Resolve `precision=auto` for this machine. The frozen config, and so the run's identity, has the resolved value."""

import os
import re
import shutil
import subprocess
from functools import cache
from importlib.metadata import version

from etude.errors import UserError

_PATIENCE = 10.0  # seconds for nvidia-smi
_AMPERE = 8.0  # the first compute capability with bfloat16 matrix multiplication


def choose_precision(asked: str, accelerator: str) -> str:
    """Return the configured precision; for "auto", bf16-mixed on GPUs that support it, 32-true elsewhere.

    This looks at the GPUs of this machine. If the run will use another one, as with SLURM, set the precision instead.

    Raises:
        UserError: it is "auto", and nvidia-smi does not tell what the GPUs support.
    """
    if asked != "auto":
        return asked
    has_gpus = accelerator in ("auto", "gpu", "cuda") and shutil.which("nvidia-smi") and "+cpu" not in version("torch")
    return "bf16-mixed" if has_gpus and _gpus_have_bf16(os.environ.get("CUDA_VISIBLE_DEVICES")) else "32-true"


@cache
def _gpus_have_bf16(visible: str | None) -> bool:
    """Return whether the `visible` GPUs (None: all) support bfloat16, without PyTorch, whose import takes seconds."""
    if visible is not None and not re.match(r"\s*(\d|GPU-|MIG-)", visible):  # such as "", -1 or NoDevFiles
        return False
    chosen = ["-i", visible] if visible and "MIG-" not in visible else []  # nvidia-smi knows whole GPUs by their names
    command = ["nvidia-smi", "--query-gpu=compute_cap", "--format=csv,noheader", *chosen]
    try:
        found = subprocess.run(command, capture_output=True, text=True, check=True, timeout=_PATIENCE).stdout.split()
        return bool(found) and all(float(capability) >= _AMPERE for capability in found)
    except (OSError, subprocess.SubprocessError, ValueError) as error:
        raise UserError(
            "precision=auto: nvidia-smi does not say what the GPUs here can do; name it, such as precision=bf16-mixed"
        ) from error
