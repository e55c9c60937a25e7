"""The attention backend that is fastest on the device."""

from torch import Tensor, nn

from etude.model.backend import Sdpa
from etude.model.fused import Fused


class ByDevice(nn.Module):
    """`Fused` on a CPU, where PyTorch's softmax is slow on short rows, and `Sdpa` elsewhere."""

    def __init__(self, *, dropout: float) -> None:
        super().__init__()
        self.processor, self.others = Fused(dropout=dropout), Sdpa(dropout=dropout)

    def forward(self, queries: Tensor, keys: Tensor, values: Tensor, mask: Tensor, bias: Tensor | None) -> Tensor:
        """Compute attention; arguments as in `Eager`."""
        backend = self.processor if queries.device.type == "cpu" else self.others
        out: Tensor = backend(queries, keys, values, mask, bias)
        return out
