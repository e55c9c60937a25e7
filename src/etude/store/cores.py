"""Count the cores that this process may use, which may be fewer than the machine has."""

import os
from pathlib import Path

_QUOTA = Path("/sys/fs/cgroup/cpu.max")  # of a container: "200000 100000" for two cores, or "max 100000"


def usable_cores() -> int:
    """Return the number of cores this process may use, given its CPU affinity and a container's quota."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    try:
        quota, period = _QUOTA.read_text(encoding="ascii").split()
        return min(cores, max(1, int(quota) // int(period)))
    except (OSError, ValueError):  # no such file, or "max"
        return cores
