"""Pause Python's garbage collector where it scans many objects repeatedly and can free none."""

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def pause_garbage_collector() -> Iterator[None]:
    """Pause the garbage collector; reference counting still frees what is not part of a cycle."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()
