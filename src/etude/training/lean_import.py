"""PyTorch and Lightning, imported in a second less.

torchmetrics, which comes with Lightning, loads scipy.signal as it is imported, only to see whether it lacks the name
`hamming`: six tenths of a second. And none of the thousands of modules is garbage, but Python looks: four tenths.
"""

import gc
import sys
from importlib import import_module
from types import ModuleType
from typing import Any

_SLOW = "scipy.signal"


class _StandIn(ModuleType):
    """Has the name that is looked for; whoever asks it for another gets that of the module itself."""

    hamming = None

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):  # the import system asks for these
            raise AttributeError(name)
        _leave(self)
        return getattr(import_module(_SLOW), name)


def import_lightning() -> None:
    """Import Lightning; what has been imported before stays as it is."""
    stand_in = _StandIn(_SLOW)
    if "torchmetrics" not in sys.modules:
        sys.modules.setdefault(_SLOW, stand_in)
    collecting = gc.isenabled()
    gc.disable()
    try:
        import_module("lightning")
    finally:
        _leave(stand_in)
        gc.freeze()
        if collecting:
            gc.enable()


def _leave(stand_in: ModuleType) -> None:
    if sys.modules.get(_SLOW) is stand_in:
        del sys.modules[_SLOW]
