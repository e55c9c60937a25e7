"""Choose how matrices are multiplied: on a CPU by oneDNN where it is faster and as exact, on a GPU in TF32 if asked to.

PyTorch computes products in single precision with MKL, and uses oneDNN only if they may be rounded to bfloat16. Only
the matrix units of some CPUs (AMX) do round then. Others still compute in single precision, those of AMD with AVX-512
twice as fast as MKL does there, if matrices are large (`benchmarks/NOTES.md`).

TF32 rounds the factors of a product to 10 bits, three more than bfloat16. So a GPU uses it unasked only in a run whose
other products are in half precision: what such a run computes in single precision is not the least exact part of it.
"""

import logging
import platform
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

import torch
from torch import nn

log = logging.getLogger(__name__)

DEFAULT, ONEDNN, TF32 = "default", "onednn", "tf32"
_SETTINGS = {DEFAULT: "none", ONEDNN: "bf16"}  # library -> PyTorch's `fp32_precision`
_LARGE = 2**15  # mean elements of a model's matrices from which oneDNN pays: it looks up code for every height M
_AMPERE = (8, 0)  # the first compute capability with TF32


def choose_matmul(
    asked: str, model: nn.Module, begun_with: str | None = None, *, accelerator: str = "cpu", precision: str = "32-true"
) -> str:
    """Choose how a run multiplies matrices, and make PyTorch do so.

    Args:
        asked: "default", "onednn" (CPU), "tf32" (GPU), or "auto": on a CPU the library that is faster on products of
            the model's sizes, on a GPU TF32 if `precision` is mixed.
        model: the model, of whose matrices only the shapes are used.
        begun_with: what a resumed run was begun with. It is kept, or the last digits would change.
        accelerator, precision: where and how precisely the rest is computed, as Lightning names it.

    Returns:
        "default", "onednn" or "tf32"; never "onednn" if that rounds to bfloat16 on this CPU.
    """
    wanted = begun_with or asked
    if accelerator in ("auto", "gpu", "cuda") and torch.cuda.is_available():
        chosen = _choose_on_gpu(wanted, precision)
    else:
        takes_onednn = wanted == ONEDNN or (wanted == "auto" and _is_faster(model))
        chosen = ONEDNN if takes_onednn and _why_no_onednn() is None else DEFAULT
        _use(chosen)
    if wanted != chosen and wanted in (ONEDNN, TF32):
        why = _why_no_onednn() if wanted == ONEDNN else "TF32 needs a GPU of compute capability 8"
        log.warning("%s: PyTorch's default multiplies matrices, and the last digits may differ", why)
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


def _choose_on_gpu(wanted: str, precision: str) -> str:
    asked_for = wanted == TF32 or (wanted == "auto" and precision.endswith("-mixed"))
    chosen = TF32 if asked_for and torch.cuda.get_device_capability() >= _AMPERE else DEFAULT
    # PyTorch's old switch: Lightning reads the precision through the old ones, which fails once a new one has been set.
    torch.backends.cuda.matmul.allow_tf32 = chosen == TF32
    torch.backends.cudnn.allow_tf32 = chosen == TF32  # recurrent layers and convolutions, where it is PyTorch's default
    return chosen


def _why_no_onednn() -> str | None:
    """Say why oneDNN cannot multiply in single precision here; None if it can."""
    if _settings() is None:
        return "oneDNN cannot be chosen here (a GPU, or PyTorch before 2.9)"
    is_exact = platform.machine() in ("x86_64", "AMD64") and "amx_tile" not in _processor()
    return None if is_exact else "oneDNN rounds more on this processor"


def _is_faster(model: nn.Module) -> bool:
    """Tell whether oneDNN is clearly faster at products of a model's sizes on this processor."""
    sizes = [weight.numel() for weight in model.parameters() if weight.dim() == 2]
    return {"AuthenticAMD", "avx512f"} <= _processor() and bool(sizes) and sum(sizes) >= _LARGE * len(sizes)


@cache
def _processor() -> set[str]:
    """Return the vendor and the instruction sets of the processor, as Linux names them; empty elsewhere."""
    file = Path("/proc/cpuinfo")
    return set(file.read_text(encoding="utf-8").split()) if file.is_file() else set()


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
