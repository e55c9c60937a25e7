"""Residual connections: how a sub-layer is combined with its input, dropout and norm (sections 3.1 and 5.4)."""

from collections.abc import Callable

import torch
from torch import Tensor, nn

from etude.model.dropout import Dropout

Sublayer = Callable[[Tensor], Tensor]
Norm = Callable[[], nn.Module]  # makes a norm of vectors of size D; called as often as norms are needed


class PostNorm(nn.Module):
    """`LayerNorm(x + Dropout(Sublayer(x)))`, as in the paper (section 3.1); no norm after the last layer."""

    def __init__(self, norm: Norm, *, dropout: float) -> None:
        super().__init__()
        self.norm = norm()
        self.dropout = Dropout(dropout)

    def forward(self, x: Tensor, sublayer: Sublayer) -> Tensor:
        """Map (B, T, D) to (B, T, D)."""
        return self.norm(x + self.dropout(sublayer(x)))

    def final_norm(self) -> nn.Module:
        """Return what follows the last layer of a stack: the identity, as its output is normalised."""
        return nn.Identity()


class PreNorm(nn.Module):
    """`x + Dropout(Sublayer(LayerNorm(x)))`, and one norm after the last layer (Xiong et al. 2020)."""

    def __init__(self, norm: Norm, *, dropout: float) -> None:
        super().__init__()
        self.norm = norm()
        self.dropout = Dropout(dropout)

    def forward(self, x: Tensor, sublayer: Sublayer) -> Tensor:
        """Map (B, T, D) to (B, T, D)."""
        return x + self.dropout(sublayer(self.norm(x)))

    def final_norm(self) -> nn.Module:
        """Return what follows the last layer of a stack: a norm, as the sum of all sub-layers is not normalised."""
        return self.norm


class Sandwich(nn.Module):
    """`x + LayerNorm(Dropout(Sublayer(LayerNorm(x))))`, and one norm after the last layer (Ding et al. 2021).

    The second norm limits how much a sub-layer can add.
    """

    def __init__(self, norm: Norm, *, dropout: float) -> None:
        super().__init__()
        self.before, self.after = norm(), norm()
        self.dropout = Dropout(dropout)

    def forward(self, x: Tensor, sublayer: Sublayer) -> Tensor:
        """Map (B, T, D) to (B, T, D)."""
        return x + self.after(self.dropout(sublayer(self.before(x))))

    def final_norm(self) -> nn.Module:
        """Return what follows the last layer of a stack: a norm, as the sum of all sub-layers is not normalised."""
        return self.before


class ReZero(nn.Module):
    """`x + alpha * Dropout(Sublayer(x))` without a norm; alpha is learned, from zero (Bachlechner et al. 2021).

    At initialisation every layer is therefore the identity.
    """

    def __init__(self, norm: Norm, *, dropout: float) -> None:
        super().__init__()
        self.alpha = nn.Parameter(torch.zeros(()))
        self.dropout = Dropout(dropout)

    def forward(self, x: Tensor, sublayer: Sublayer) -> Tensor:
        """Map (B, T, D) to (B, T, D)."""
        return x + self.alpha * self.dropout(sublayer(x))

    def final_norm(self) -> nn.Module:
        """Return what follows the last layer of a stack: the identity."""
        return nn.Identity()
