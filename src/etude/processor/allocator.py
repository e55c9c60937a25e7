"""Keep large blocks of memory instead of returning them to the system after every step.

By default glibc maps new memory for each large tensor and unmaps it when the tensor is freed; on a CPU the page faults
cost about a seventh of a training step.
"""

import ctypes
import sys

_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD = -1, -3


def keep_large_blocks() -> None:
    """Make glibc reuse large blocks; with another C library do nothing."""
    if not sys.platform.startswith("linux"):
        return
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (OSError, AttributeError):  # not glibc
        return
    mallopt(_M_MMAP_THRESHOLD, 1 << 30)
    mallopt(_M_TRIM_THRESHOLD, (1 << 31) - 1)
