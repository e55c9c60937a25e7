"""How a sub-layer is wrapped: the residual connection, its dropout, where the norm stands (sections 3.1 and 5.4)."""

from collections.abc import Callable

import torch
from torch import Tensor, nn

from etude.model.dropout import Dropout

Sublayer = Callable[[Tensor], Tensor]
Norm = Callable[[], nn.Module]  # makes a norm of D-vectors; a wrapping takes as many as it needs


class PostNorm(nn.Module):
    """`LayerNorm(x + Dropout(Sublayer(x)))`, as the paper has it (section 3.1); no norm after the last layer."""

    def __init__(self, norm: Norm, *, dropout: float) -> None:
        super().__init__()
        self.norm = norm()
        self.dropout = Dropout(dropout)

    def forward(self, x: Tensor, sublayer: Sublayer) -> Tensor:
        """(B, T, D) to (B, T, D)."""
        return self.norm(x + self.dropout(sublayer(x)))

    def final_norm(self) -> nn.Module:
        """What stands after the last layer of a stack: nothing, its output is normalised."""
        return nn.Identity()


class PreNorm(nn.Module):
    """`x + Dropout(Sublayer(LayerNorm(x)))`, and one norm after the last layer (Xiong et al. 2020)."""

    def __init__(self, norm: Norm, *, dropout: float) -> None:
        super().__init__()
        self.norm = norm()
        self.dropout = Dropout(dropout)

    def forward(self, x: Tensor, sublayer: Sublayer) -> Tensor:
        """(B, T, D) to (B, T, D)."""
        return x + self.dropout(sublayer(self.norm(x)))

    def final_norm(self) -> nn.Module:
        """What stands after the last layer of a stack: a norm, or the sum of all sub-layers would never meet one."""
        return self.norm


class Sandwich(nn.Module):
    """`x + LayerNorm(Dropout(Sublayer(LayerNorm(x))))`, and one norm after the last layer (Ding et al. 2021).

    The second norm keeps any sub-layer from adding more than its share.
    """

    def __init__(self, norm: Norm, *, dropout: float) -> None:
        super().__init__()
        self.before, self.after = norm(), norm()
        self.dropout = Dropout(dropout)

    def forward(self, x: Tensor, sublayer: Sublayer) -> Tensor:
        """(B, T, D) to (B, T, D)."""
        return x + self.after(self.dropout(sublayer(self.before(x))))

    def final_norm(self) -> nn.Module:
        """What stands after the last layer of a stack: a norm, as in `PreNorm`, for the sum itself has met none."""
        return self.before


class ReZero(nn.Module):
    """`x + alpha * Dropout(Sublayer(x))` without any norm; alpha is learned from zero (Bachlechner et al. 2021).

    At the start every layer passes on what it was given.
    """

    def __init__(self, norm: Norm, *, dropout: float) -> None:
        super().__init__()
        self.alpha = nn.Parameter(torch.zeros(()))
        self.dropout = Dropout(dropout)

    def forward(self, x: Tensor, sublayer: Sublayer) -> Tensor:
        """(B, T, D) to (B, T, D)."""
        return x + self.alpha * self.dropout(sublayer(x))

    def final_norm(self) -> nn.Module:
        """What stands after the last layer of a stack: nothing."""
        return nn.Identity()
