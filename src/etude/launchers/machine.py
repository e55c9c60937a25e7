"""What this machine has: the cores and the GPUs that a sweep may use. Asked without torch, which takes seconds."""

import os
import re
import subprocess
from itertools import takewhile
from pathlib import Path

_GPU = re.compile(r"GPU (\d+): ")
_SLICE = re.compile(r"\s+MIG .*\(UUID: (MIG-[^)]+)\)")
_ID = re.compile(r"\d+|(GPU|MIG)-.+")
_PATIENCE = 60.0  # seconds: a driver that nobody keeps awake takes a while per GPU


def usable_cores() -> int:
    """The cores this process may use: what the machine has, less what affinity and a container's quota take away."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    try:
        quota, period = Path("/sys/fs/cgroup/cpu.max").read_text(encoding="ascii").split()
        return min(cores, max(1, int(quota) // int(period)))
    except (OSError, ValueError):  # no such file, or "max"
        return cores


def visible_gpus() -> tuple[str, ...]:
    """The ids of the GPUs this process may use: those that CUDA_VISIBLE_DEVICES names, else all of the machine."""
    named = os.environ.get("CUDA_VISIBLE_DEVICES")
    if named is not None:  # CUDA heeds what stands before the first id that cannot be
        ids = (part.strip() for part in named.split(","))
        return tuple(dict.fromkeys(takewhile(_ID.fullmatch, ids)))
    try:
        listing = subprocess.run(["nvidia-smi", "-L"], capture_output=True, text=True, check=True, timeout=_PATIENCE)
    except (OSError, subprocess.SubprocessError):  # no driver, no GPU
        return ()
    return listed_gpus(listing.stdout)


def listed_gpus(listing: str) -> tuple[str, ...]:
    """The ids in what `nvidia-smi -L` prints; of a GPU that is cut into slices (MIG), those of its slices.

    Example:
        >>> listed_gpus("GPU 0: A100 (UUID: GPU-5)\\n  MIG 1g.5gb Device 0: (UUID: MIG-7a)\\nGPU 1: A100 (UUID: GPU-6)")
        ('MIG-7a', '1')
    """
    ids: dict[str, list[str]] = {}
    for line in listing.splitlines():
        if gpu := _GPU.match(line):
            ids[gpu[1]] = []
        elif ids and (part := _SLICE.match(line)):
            ids[list(ids)[-1]].append(part[1])
    return tuple(one for gpu, slices in ids.items() for one in slices or [gpu])
