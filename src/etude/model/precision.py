"""How many bits a model computes with: products in half precision, weights, softmax, norms and loss in single."""

from contextlib import AbstractContextManager, nullcontext

import torch

_HALF = {"bf16-mixed": torch.bfloat16, "16-mixed": torch.float16}


def autocast(precision: str, device: torch.device) -> AbstractContextManager[object]:
    """Compute as training in `precision` does: "bf16-mixed", "16-mixed"; in any other, as the weights are."""
    half = _HALF.get(precision)
    return torch.autocast(device.type, half) if half else nullcontext()


def allow_tf32() -> None:
    """Have a GPU round the factors of single-precision products to 10 bits, as its fast units do.

    Nothing is said where there is no GPU: a processor would take it for leave to round its own.
    """
    if torch.cuda.is_available():
        torch.set_float32_matmul_precision("high")
