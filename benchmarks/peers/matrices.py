"""The products of matrices that the machine itself is capable of, by each library that PyTorch multiplies with."""

import time

import torch

SHAPES = ((2000, 256, 1024), (2000, 1024, 256), (2000, 256, 8000), (2048, 2048, 2048))  # M, K, N
SECONDS = 0.3  # of each


class Products:
    """A round multiplies in some shapes of the model's, and a large one; its rate is that of the fastest, in GFLOP/s.

    Args:
        library: "MKL" or "oneDNN".
        bf16: in 16 bits, where PyTorch knows oneDNN alone.
    """

    def __init__(self, library: str, bf16: bool = False) -> None:
        torch.backends.mkldnn.matmul.fp32_precision = "bf16" if library == "oneDNN" else "none"
        kind = torch.bfloat16 if bf16 else torch.float32
        self.pairs = [(torch.randn(m, k, dtype=kind), torch.randn(k, n, dtype=kind)) for m, k, n in SHAPES]

    def round(self) -> float:
        return max(self._rate(*pair) for pair in self.pairs) / 1e9

    def _rate(self, left: torch.Tensor, right: torch.Tensor) -> float:
        count, started = 0, time.perf_counter()
        while (took := time.perf_counter() - started) < SECONDS:
            left @ right
            count += 1
        return 2 * count * left.size(0) * left.size(1) * right.size(1) / took
