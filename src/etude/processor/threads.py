"""How long OpenMP's threads spin while they wait for each other, before they release their core."""

import os
from collections.abc import MutableMapping

_SPIN_COUNT = "40000"  # less than 0.1 ms; a shorter wait is slower even if nothing else runs


def wait_briefly(environment: MutableMapping[str, str] = os.environ) -> None:
    """Make waiting OpenMP threads release their core soon, unless the environment already sets how they wait.

    By default they spin for milliseconds. If other programs need the cores, a small model spends most of its time that
    way: two threads on two cores that were shared with two other programs trained at a quarter of the speed that they
    reach with this setting.

    GNU's OpenMP, which PyTorch ships for Linux, reads the setting when it is loaded: call this before importing torch.

    Args:
        environment: environment variables of this process, or of one to be started.
    """
    if "OMP_WAIT_POLICY" not in environment:
        environment.setdefault("GOMP_SPINCOUNT", _SPIN_COUNT)
