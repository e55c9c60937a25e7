"""Choose the library for matrix products on a CPU: oneDNN if it is faster and as exact, else PyTorch's default.

PyTorch computes products in single precision with MKL, and uses oneDNN only if they may be rounded to bfloat16. Few
CPUs have units for bfloat16. On the others oneDNN still computes in single precision, often twice as fast. Whether it
does so on this CPU is tested.
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
_SETTINGS = {DEFAULT: "none", ONEDNN: "bf16"}  # library -> PyTorch's `fp32_precision`
_SHAPES = ((256, 64, 256), (256, 256, 64), (512, 256, 1024), (512, 1024, 256), (256, 128, 4096))  # M, K, N
_ROWS = range(232, 332, 3)  # M: oneDNN compiles code for every M, and looks it up for each product
_LARGEST = 1024  # maximum of K and N when timing: larger matrices reach the same speed
_MARGIN = 1.5  # required speedup: less may be noise, and oneDNN is slower at attention's small products, not timed here
_EXACT = 4.0  # allowed error, relative to the default's: with bfloat16 it is about ten thousand times as large
_REPEATS = 4  # the first compiles the code


def choose_matmul(asked: str, model: nn.Module, begun_with: str | None = None) -> str:
    """Choose the library for a run, and make PyTorch use it.

    Args:
        asked: "default", "onednn", or "auto" for the one that is faster on products of the model's sizes.
        model: the model, whose matrices determine the sizes; only their shapes are used.
        begun_with: the library that a resumed run was begun with. It is kept, or the last digits would change.

    Returns:
        "default" or "onednn"; never "onednn" if that rounds to bfloat16 on this CPU.
    """
    wanted = begun_with or asked
    if wanted == DEFAULT or not _is_exact():
        chosen = DEFAULT
    else:
        chosen = ONEDNN if wanted == ONEDNN or _is_faster(_sizes(model)) else DEFAULT
    if wanted == ONEDNN != chosen:
        why = "rounds more on this processor" if _settings() else "cannot be chosen here (a GPU, or PyTorch before 2.9)"
        log.warning("oneDNN %s: PyTorch's default multiplies matrices, and the last digits may differ", why)
    _use(chosen)
    return chosen


@cache
def _is_exact() -> bool:
    """Tell whether oneDNN's products are about as close to those in double precision as the default's."""
    if _settings() is None:
        return False
    with _restore_settings():
        return all(_error(ONEDNN, *pair) <= _EXACT * _error(DEFAULT, *pair) for pair in _pairs())


@cache
def _is_faster(sizes: tuple[tuple[int, int, int], ...]) -> bool:
    """Tell whether oneDNN is clearly faster at products with matrices of `sizes`: K, N, and how many there are."""
    with _restore_settings():
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
    """Compute the error of a product, relative to the product in double precision."""
    _use(library)
    exact = left.double() @ right.double()
    return float((left @ right - exact).norm() / exact.norm())


def _time(library: str, k: int, n: int) -> float:
    """Time one product for each M, in CPU seconds of this thread, which other programs do not affect; the best try."""
    _use(library)
    right = torch.ones(k, n)
    lefts = [torch.ones(rows, k) for rows in _ROWS]
    best = float("inf")
    for _ in range(_REPEATS):
        started = time.thread_time()
        for left in lefts:
            left @ right
        best = min(best, time.thread_time() - started)
    return best


def _pairs() -> Iterator[tuple[Tensor, Tensor]]:
    draw = torch.Generator().manual_seed(0)
    for m, k, n in _SHAPES:
        yield torch.randn(m, k, generator=draw), torch.randn(k, n, generator=draw)


def _settings() -> Any:
    """Return PyTorch's settings for oneDNN's matrix products; None if they do not exist or must not be set.

    They exist since PyTorch 2.9, and have no effect without oneDNN. With a GPU, Lightning reads the precision through
    PyTorch's old API, which fails once it has been set through the new one.
    """
    settings = getattr(torch.backends.mkldnn, "matmul", None)
    able = hasattr(settings, "fp32_precision") and torch.backends.mkldnn.is_available()
    return settings if able and not torch.cuda.is_available() else None


def _use(library: str) -> None:
    if (settings := _settings()) is not None:
        settings.fp32_precision = _SETTINGS[library]


@contextmanager
def _restore_settings() -> Iterator[None]:
    """Compute with one thread inside the context; restore threads and library afterwards."""
    settings = _settings()
    before, threads = settings.fp32_precision, torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        settings.fp32_precision = before
        torch.set_num_threads(threads)
