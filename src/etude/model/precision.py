"""Mixed precision: products in half precision; weights, softmax, norms and loss in float32."""

from contextlib import AbstractContextManager, nullcontext

import torch

_HALF = {"bf16-mixed": torch.bfloat16, "16-mixed": torch.float16}


def autocast(precision: str, device: torch.device) -> AbstractContextManager[object]:
    """Return the autocast context of `precision`: of "bf16-mixed" or "16-mixed"; any other has none.

    On a CPU there is none for "16-mixed", nor for "bf16-mixed" if the CPU has no bfloat16 units: it would take some
    fifty times as long.
    """
    half = _HALF.get(precision)
    if half is None or (device.type == "cpu" and not (half == torch.bfloat16 and _processor_has_bf16())):
        return nullcontext()
    return torch.autocast(device.type, half)


def _processor_has_bf16() -> bool:
    return bool(torch.ops.mkldnn._is_mkldnn_bf16_supported())
