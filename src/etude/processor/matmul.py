"""Which library multiplies matrices on a processor: oneDNN where it is faster and as exact, else PyTorch's default.

PyTorch gives products in single precision to MKL, and to oneDNN if these may be rounded to bfloat16. Few processors
have units for that. On the others oneDNN computes in single precision all the same, often twice as fast: whether it
does so here is tried out.
"""

import logging
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

import torch
from torch import Tensor, nn

log = logging.getLogger(__name__)

DEFAULT, ONEDNN = "default", "onednn"
_SETTINGS = {DEFAULT: "none", ONEDNN: "bf16"}  # how PyTorch is told
_SHAPES = ((256, 64, 256), (256, 256, 64), (512, 256, 1024), (512, 1024, 256), (256, 128, 4096))  # M, K, N
_ROWS = range(232, 332, 3)  # M: oneDNN makes code for every height, and looks for it in each product
_LARGEST = 1024  # of K and N: what is larger goes as fast as this
_MARGIN = 1.5  # times as fast: less may be noise, and the small products of attention, not tried here, go the other way
_EXACT = 4.0  # times the default's error: bfloat16 has some ten thousand times
_TURNS = 4  # the first makes the code


def choose_matmul(asked: str, model: nn.Module, begun_with: str | None = None) -> str:
    """Choose the library for a run, and have PyTorch use it.

    Args:
        asked: "default", "onednn", or "auto" for the one that is faster on products of the model's sizes.
        model: whose matrices are multiplied with; only their shapes are looked at.
        begun_with: what the run was begun with, if it goes on: it is kept, or the last digits would change.

    Returns:
        "default" or "onednn"; what rounds to bfloat16 here is never taken.
    """
    wanted = begun_with or asked
    if wanted == DEFAULT or not _is_exact():
        chosen = DEFAULT
    else:
        chosen = ONEDNN if wanted == ONEDNN or _is_faster(_sizes(model)) else DEFAULT
    if wanted == ONEDNN != chosen:
        why = "rounds more on this processor" if _settings() else "cannot be chosen here (a GPU, or PyTorch before 2.9)"
        log.warning("oneDNN %s: PyTorch's default multiplies matrices, and the last digits may differ", why)
    _tell(chosen)
    return chosen


@cache
def _is_exact() -> bool:
    """Whether oneDNN's products are as near to those in double precision as the default's."""
    if _settings() is None:
        return False
    with _untouched():
        return all(_error(ONEDNN, *pair) <= _EXACT * _error(DEFAULT, *pair) for pair in _pairs())


@cache
def _is_faster(sizes: tuple[tuple[int, int, int], ...]) -> bool:
    """Whether oneDNN takes clearly less time for products with matrices of `sizes`: K, N, and how many there are."""
    with _untouched():
        seconds = dict.fromkeys(_SETTINGS, 0.0)
        for k, n, count in sizes:
            for library in _SETTINGS:
                seconds[library] += count * _time(library, k, n)
    return seconds[DEFAULT] > _MARGIN * seconds[ONEDNN]


def _sizes(model: nn.Module) -> tuple[tuple[int, int, int], ...]:
    shapes = (weight.shape for weight in model.parameters() if weight.dim() == 2)
    counted = Counter((min(k, _LARGEST), min(n, _LARGEST)) for n, k in shapes)
    return tuple((k, n, count) for (k, n), count in sorted(counted.items()))


def _error(library: str, left: Tensor, right: Tensor) -> float:
    """Relative to the product in double precision."""
    _tell(library)
    exact = left.double() @ right.double()
    return float((left @ right - exact).norm() / exact.norm())


def _time(library: str, k: int, n: int) -> float:
    """Seconds of this thread at work, which do not count what else the machine does, for a product of every height."""
    _tell(library)
    right = torch.ones(k, n)
    heights = [torch.ones(rows, k) for rows in _ROWS]
    best = float("inf")
    for _ in range(_TURNS):
        started = time.thread_time()
        for left in heights:
            left @ right
        best = min(best, time.thread_time() - started)
    return best


def _pairs() -> Iterator[tuple[Tensor, Tensor]]:
    draw = torch.Generator().manual_seed(0)
    for m, k, n in _SHAPES:
        yield torch.randn(m, k, generator=draw), torch.randn(k, n, generator=draw)


def _settings() -> Any:
    """Where PyTorch is told; None where it cannot be, or must not.

    Before 2.9 there was no such setting, and it means nothing without oneDNN. Where there is a GPU, Lightning asks
    PyTorch in the old way how products are rounded, which fails once it has been told in the new way.
    """
    settings = getattr(torch.backends.mkldnn, "matmul", None)
    able = hasattr(settings, "fp32_precision") and torch.backends.mkldnn.is_available()
    return settings if able and not torch.cuda.is_available() else None


def _tell(library: str) -> None:
    if (settings := _settings()) is not None:
        settings.fp32_precision = _SETTINGS[library]


@contextmanager
def _untouched() -> Iterator[None]:
    """With one thread; afterwards PyTorch uses what it used before."""
    settings = _settings()
    before, threads = settings.fp32_precision, torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        settings.fp32_precision = before
        torch.set_num_threads(threads)
