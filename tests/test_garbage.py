"""The garbage collector is paused, and afterwards as it was before, whatever happened meanwhile."""

import gc
from collections.abc import Iterator

import pytest

from etude.garbage import pause_garbage_collector


@pytest.fixture(autouse=True)
def as_found() -> Iterator[None]:
    enabled = gc.isenabled()
    yield
    (gc.enable if enabled else gc.disable)()


@pytest.mark.parametrize("enabled", [True, False])
@pytest.mark.parametrize("error", [None, ValueError])
def test_it_is_paused_within_and_afterwards_as_before(enabled: bool, error: type[Exception] | None) -> None:
    (gc.enable if enabled else gc.disable)()
    try:
        with pause_garbage_collector():
            within = gc.isenabled()
            if error:
                raise error
    except ValueError:
        assert error
    assert (within, gc.isenabled()) == (False, enabled)


def test_pauses_can_be_nested() -> None:
    gc.enable()
    with pause_garbage_collector():
        with pause_garbage_collector():
            pass
        within = gc.isenabled()
    assert not within
    assert gc.isenabled()
