"""Attention as each device computes it fastest."""

from torch import Tensor, nn

from etude.model.backend import Sdpa
from etude.model.fused import Fused


class ByDevice(nn.Module):
    """`Fused` on a processor, whose short rows PyTorch's softmax is slow at, and `Sdpa` elsewhere."""

    def __init__(self, *, dropout: float) -> None:
        super().__init__()
        self.processor, self.others = Fused(dropout=dropout), Sdpa(dropout=dropout)

    def forward(self, queries: Tensor, keys: Tensor, values: Tensor, mask: Tensor, bias: Tensor | None) -> Tensor:
        """As in `Eager`."""
        backend = self.processor if queries.device.type == "cpu" else self.others
        read: Tensor = backend(queries, keys, values, mask, bias)
        return read
