"""Mixed precision: products in half precision; weights, softmax, norms and loss in float32."""

from contextlib import AbstractContextManager, nullcontext

import torch

_HALF = {"bf16-mixed": torch.bfloat16, "16-mixed": torch.float16}
NO_UNITS = "this processor has no units for bfloat16"


def autocast(precision: str, device: torch.device) -> AbstractContextManager[object]:
    """Return the autocast context of `precision`: of "bf16-mixed" or "16-mixed"; any other has none.

    On a CPU there is none for "16-mixed", nor where `computed_precision` is not "bf16-mixed".
    """
    half = _HALF.get(computed_precision(precision, device.type))
    if half is None or (device.type == "cpu" and half == torch.float16):
        return nullcontext()
    return torch.autocast(device.type, half)


def without_autocast(device: torch.device) -> AbstractContextManager[object]:
    """Return the context in which nothing is computed in half precision that is not given in it."""
    known = torch.amp.is_autocast_available(device.type)
    return torch.autocast(device.type, enabled=False) if known else nullcontext()


def computed_precision(precision: str, device: str) -> str:
    """Return the precision in which a device of this type computes a run of `precision`.

    It is "32-true" for "bf16-mixed" on a CPU without units for bfloat16, which would take some fifty times as long.
    """
    lacks_units = precision == "bf16-mixed" and device == "cpu" and not _processor_has_bf16()
    return "32-true" if lacks_units else precision


def _processor_has_bf16() -> bool:
    return bool(torch.ops.mkldnn._is_mkldnn_bf16_supported())
