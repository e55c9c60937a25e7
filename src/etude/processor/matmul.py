"""Choose how matrices are multiplied: on a CPU by oneDNN if it is faster and as exact, on a GPU in TF32 if asked to.

PyTorch computes products in single precision with MKL, and uses oneDNN only if they may be rounded to bfloat16. Few
CPUs have units for bfloat16. On the others oneDNN still computes in single precision, often twice as fast. Whether it
does so on this CPU is tested.

TF32 rounds the factors of a product to 10 bits, three more than bfloat16. So a GPU uses it unasked only in a run whose
other products are in half precision: what such a run computes in single precision is not the least exact part of it.
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

DEFAULT, ONEDNN, TF32 = "default", "onednn", "tf32"
_SETTINGS = {DEFAULT: "none", ONEDNN: "bf16"}  # library -> PyTorch's `fp32_precision`
_SHAPES = ((256, 64, 256), (256, 256, 64), (512, 256, 1024), (512, 1024, 256), (256, 128, 4096))  # M, K, N
_ROWS = range(232, 332, 3)  # M: oneDNN compiles code for every M, and looks it up for each product
_LARGEST = 1024  # maximum of K and N when timing: larger matrices reach the same speed
_SMALL = 2**15  # K N up to which looking up the code counts, so that every M is timed; of larger ones, fewer
_MARGIN = 1.5  # required speedup: less may be noise, and oneDNN is slower at attention's small products, not timed here
_EXACT = 4.0  # allowed error, relative to the default's: with bfloat16 it is about ten thousand times as large
_REPEATS = 4  # the first compiles the code
_AMPERE = (8, 0)  # the first compute capability with TF32


def choose_matmul(
    asked: str, model: nn.Module, begun_with: str | None = None, *, accelerator: str = "cpu", precision: str = "32-true"
) -> str:
    """Choose how a run multiplies matrices, and make PyTorch do so.

    Args:
        asked: "default", "onednn" (CPU), "tf32" (GPU), or "auto": on a CPU the library that is faster on products of
            the model's sizes, on a GPU TF32 if `precision` is mixed.
        model: the model, whose matrices determine the sizes; only their shapes are used.
        begun_with: what a resumed run was begun with. It is kept, or the last digits would change.
        accelerator, precision: where and how precisely the rest is computed, as Lightning names it.

    Returns:
        "default", "onednn" or "tf32"; never "onednn" if that rounds to bfloat16 on this CPU.
    """
    wanted = begun_with or asked
    on_gpu = accelerator in ("auto", "gpu", "cuda") and torch.cuda.is_available()
    chosen = _choose_on_gpu(wanted, precision) if on_gpu else _choose_on_cpu(wanted, model)
    if wanted != chosen and wanted in (ONEDNN, TF32):
        log.warning("%s: PyTorch's default multiplies matrices, and the last digits may differ", _why_not(wanted))
    return chosen


@contextmanager
def without_tf32() -> Iterator[None]:
    """Compute in full single precision inside the context, on a GPU too."""
    if not torch.cuda.is_available():
        yield
        return
    settings: list[Any] = [torch.backends.cuda.matmul, torch.backends.cudnn]
    before = [one.allow_tf32 for one in settings]
    try:
        for one in settings:
            one.allow_tf32 = False
        yield
    finally:
        for one, allowed in zip(settings, before, strict=True):
            one.allow_tf32 = allowed


def _choose_on_cpu(wanted: str, model: nn.Module) -> str:
    if wanted in (DEFAULT, TF32) or not _is_exact():
        chosen = DEFAULT
    else:
        chosen = ONEDNN if wanted == ONEDNN or _is_faster(_sizes(model)) else DEFAULT
    _use(chosen)
    return chosen


def _choose_on_gpu(wanted: str, precision: str) -> str:
    asked_for = wanted == TF32 or (wanted == "auto" and precision.endswith("-mixed"))
    chosen = TF32 if asked_for and torch.cuda.get_device_capability() >= _AMPERE else DEFAULT
    # PyTorch's old switch: Lightning reads the precision through the old ones, which fails once a new one has been set.
    torch.backends.cuda.matmul.allow_tf32 = chosen == TF32
    torch.backends.cudnn.allow_tf32 = chosen == TF32  # recurrent layers and convolutions, where it is PyTorch's default
    return chosen


def _why_not(wanted: str) -> str:
    if wanted == TF32:
        return "TF32 needs a GPU of compute capability 8"
    why = "rounds more on this processor" if _settings() else "cannot be chosen here (a GPU, or PyTorch before 2.9)"
    return f"oneDNN {why}"


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
    """Time products of several M, in CPU seconds of this thread, which other programs do not affect.

    Returns:
        The mean seconds of a product in the best try.
    """
    _use(library)
    right = torch.ones(k, n)
    lefts = [torch.ones(rows, k) for rows in _ROWS[:: -(-k * n // _SMALL)]]
    best = float("inf")
    for _ in range(_REPEATS):
        started = time.thread_time()
        for left in lefts:
            left @ right
        best = min(best, (time.thread_time() - started) / len(lefts))
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
