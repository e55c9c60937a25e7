"""The position-wise feed-forward network (section 3.3)."""

from torch import Tensor, nn
from torch.nn import functional as F


class ReluFeedForward(nn.Module):
    """`max(0, x W1 + b1) W2 + b2`, equation (2)."""

    def __init__(self, *, d_model: int, d_ff: int) -> None:
        super().__init__()
        self.inner = nn.Linear(d_model, d_ff)
        self.outer = nn.Linear(d_ff, d_model)

    def forward(self, x: Tensor) -> Tensor:
        """(B, T, D) to (B, T, D), each position by itself."""
        return self.outer(F.relu(self.inner(x)))
