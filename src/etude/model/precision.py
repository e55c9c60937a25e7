"""How many bits a model computes with: products in half precision, weights, softmax, norms and loss in single."""

from contextlib import AbstractContextManager, nullcontext

import torch

_HALF = {"bf16-mixed": torch.bfloat16, "16-mixed": torch.float16}


def autocast(precision: str, device: torch.device) -> AbstractContextManager[object]:
    """Compute as training in `precision` does: "bf16-mixed", "16-mixed"; in any other, as the weights are.

    A processor that has no units for it would take some fifty times as long: there too, as the weights are.
    """
    half = _HALF.get(precision)
    if half is None or (device.type == "cpu" and not (half == torch.bfloat16 and _processor_has_bf16())):
        return nullcontext()
    return torch.autocast(device.type, half)


def _processor_has_bf16() -> bool:
    return bool(torch.ops.mkldnn._is_mkldnn_bf16_supported())
