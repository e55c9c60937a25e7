"""How long the threads of a processor wait for each other before they let go of their core."""

import os
from collections.abc import MutableMapping

_ROUNDS = "40000"  # less than 0.1 ms; a shorter wait costs where nothing else runs, too


def wait_briefly(environment: MutableMapping[str, str] = os.environ) -> None:
    """Have OpenMP's threads let go of their core soon where they wait, unless the environment says how they shall.

    By default they keep it for milliseconds. Where other programs want it too, that is most of what a small model does:
    two threads on two cores that were shared with two other programs trained a quarter as fast as they do with this.

    GNU's OpenMP, which PyTorch brings for Linux, reads it when it is loaded: call this before torch is imported.

    Args:
        environment: of this process, or of one to be started.
    """
    if "OMP_WAIT_POLICY" not in environment:
        environment.setdefault("GOMP_SPINCOUNT", _ROUNDS)
