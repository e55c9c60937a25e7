"""Import PyTorch and Lightning one second faster.

torchmetrics, which Lightning imports, imports scipy.signal only to see whether it lacks the name `hamming`: 0.6
seconds. Garbage collection during the imports finds nothing, and takes 0.4 seconds.
"""

import gc
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from types import ModuleType
from typing import Any

from etude.garbage import pause_garbage_collector

_SLOW = "scipy.signal"


class _StandIn(ModuleType):
    """A module with the name `hamming` only; for any other name it imports the real module and returns that one's."""

    hamming = None

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") and name not in ("__path__", "__all__"):  # the import system looks these up
            raise AttributeError(name)
        _remove(self)
        return getattr(import_module(_SLOW), name)


@contextmanager
def lean_imports() -> Iterator[None]:
    """Import quickly within the context; modules that have already been imported are not affected."""
    stand_in = _StandIn(_SLOW)
    if "torchmetrics" not in sys.modules:
        sys.modules.setdefault(_SLOW, stand_in)
    try:
        with pause_garbage_collector():
            yield
    finally:
        _remove(stand_in)


def import_lightning() -> None:
    """Import Lightning."""
    with lean_imports():
        import_module("lightning")
    gc.freeze()


def _remove(stand_in: ModuleType) -> None:
    if sys.modules.get(_SLOW) is stand_in:
        del sys.modules[_SLOW]
