"""Fixtures for the whole suite."""

import gc
import logging
import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.remembered import parse_nothing_twice, remembering

from etude.config import compose

# One thread, as in the processes that tests start: another number rounds otherwise. Threads of several workers would
# also wait for each other.
os.environ.setdefault("OMP_NUM_THREADS", "1")


@pytest.fixture(scope="session", autouse=True)
def nothing_ignored() -> None:
    """Behind `nohup` or `&` the suite ignores signals, and what it starts would, too."""
    for number in (signal.SIGINT, signal.SIGHUP):
        if signal.getsignal(number) == signal.SIG_IGN:
            signal.signal(number, signal.default_int_handler)


@pytest.fixture(scope="session", autouse=True)
def nothing_composed_twice(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Hydra's compositions are kept, for all workers."""
    base = tmp_path_factory.getbasetemp()
    folder = (base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / "compositions"
    folder.mkdir(exist_ok=True)
    with pytest.MonkeyPatch.context() as patched:
        parse_nothing_twice(patched.setattr)
        patched.setattr(compose, "hydra_compose", remembering(compose.hydra_compose, folder))
        yield


@pytest.fixture(autouse=True)
def logs_end_with_their_test() -> Iterator[None]:
    """What a test sends its log to, a later one finds closed."""
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    yield
    root.handlers[:] = handlers
    root.setLevel(level)


@pytest.fixture(params=[True, False], ids=["bf16", "no-bf16"])
def has_bf16(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> bool:
    """Whether the processor has units for bfloat16: both, whatever this one has. In truth without, it is slow."""
    has: bool = request.param
    monkeypatch.setattr("etude.model.precision._processor_has_bf16", lambda: has)
    return has


@pytest.fixture(scope="session")
def multi30k_root() -> Path:
    """A folder with the files of Multi30k: $ETUDE_MULTI30K, or `shared/data/multi30k` beside the checkout."""
    beside = Path(__file__).parents[2] / "shared" / "data" / "multi30k"
    root = Path(os.environ.get("ETUDE_MULTI30K") or beside)
    if not (root / "train.en.gz").is_file():
        pytest.skip("needs Multi30k: set ETUDE_MULTI30K to a folder with its .gz files")
    return root


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Files with slow tests come first, the longest before all: the last one keeps one worker busy, the others idle."""
    minutes: dict[Path, float] = {}
    for item in items:
        if slow := item.get_closest_marker("slow"):
            minutes[item.path] = max(slow.kwargs.get("minutes", 0.0), minutes.get(item.path, 0.0))
    items.sort(key=lambda item: -minutes.get(item.path, -1.0))


def pytest_collection_finish() -> None:
    """The thousands of tests that were collected are no garbage: the collector need not look at them again.

    Nor need it look at what a test makes so often; the suite is a fifteenth faster for it.
    """
    gc.freeze()
    gc.set_threshold(100_000, 50, 100)
