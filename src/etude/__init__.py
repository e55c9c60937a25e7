"""étude: study the Transformer one change at a time.

    import etude

    etude.results("table3")         # a pandas.DataFrame, a row a run
    etude.compare("table3")         # the table of the study, in a terminal or a notebook
    etude.load("table3/A1/1")       # a trained run: its curves, its model, which translates and generates

What these need is imported when they are used.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from etude.report.notebook import compare, results
    from etude.trained.run import load

__version__ = "1.0.0"
__all__ = ["compare", "load", "results"]

_HOMES = {"compare": "etude.report.notebook", "load": "etude.trained.run", "results": "etude.report.notebook"}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'etude' has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
