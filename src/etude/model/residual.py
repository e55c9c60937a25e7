"""Residual connections: how a sub-layer is combined with its input, dropout and norm (sections 3.1 and 5.4)."""

from collections.abc import Callable

import torch
from torch import Tensor, nn

from etude.model.dropout import Dropout
from etude.model.numbered import Numbered, Place

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


class Fixup(nn.Module):
    """`x + scale * Dropout(Sublayer(x + shift))` without a norm; both numbers are learned (Zhang et al. 2019).

    It goes with the start of the same name (`model/init=fixup`), with which every layer is the identity at first.
    """

    def __init__(self, norm: Norm, *, dropout: float) -> None:
        super().__init__()
        self.shift, self.scale = nn.Parameter(torch.zeros(())), nn.Parameter(torch.ones(()))
        self.dropout = Dropout(dropout)

    def forward(self, x: Tensor, sublayer: Sublayer) -> Tensor:
        """Map (B, T, D) to (B, T, D)."""
        return x + self.scale * self.dropout(sublayer(x + self.shift))

    def final_norm(self) -> nn.Module:
        """Return what follows the last layer of a stack: the identity."""
        return nn.Identity()


class ReZeroPreNorm(PreNorm):
    """`x + alpha * Dropout(Sublayer(Norm(x)))`, alpha learned, from zero, and one norm after the last layer.

    ReZero with the norms that it was to replace (Narang et al. 2021).
    """

    def __init__(self, norm: Norm, *, dropout: float) -> None:
        super().__init__(norm, dropout=dropout)
        self.alpha = nn.Parameter(torch.zeros(()))

    def forward(self, x: Tensor, sublayer: Sublayer) -> Tensor:
        """Map (B, T, D) to (B, T, D)."""
        return x + self.alpha * self.dropout(sublayer(self.norm(x)))


class GatedPreNorm(PreNorm):
    """`x + Dropout((1 - u) y + u c)`, y = Sublayer(Norm(x)): a gate as of a recurrent unit (Narang et al. 2021).

    With h = Norm(x), u = sigmoid([h, y] W_u), r = sigmoid([h, y] W_r) and c = sigmoid([r x, y] W_c), with biases; the
    candidate c has a sigmoid where gated recurrent units have a tanh, as in the code of that paper; that code also
    normalises each vector that enters a gate.
    """

    def __init__(self, norm: Norm, *, dropout: float, d_model: int) -> None:
        super().__init__(norm, dropout=dropout)
        self.update, self.reset, self.candidate = (nn.Linear(2 * d_model, d_model) for _ in range(3))

    def forward(self, x: Tensor, sublayer: Sublayer) -> Tensor:
        """Map (B, T, D) to (B, T, D)."""
        h = self.norm(x)
        y = sublayer(h)
        both = torch.cat([h, y], dim=-1)
        update, reset = self.update(both).sigmoid(), self.reset(both).sigmoid()
        candidate = self.candidate(torch.cat([reset * x, y], dim=-1)).sigmoid()
        return x + self.dropout((1 - update) * y + update * candidate)


class PeriNorm(Sandwich):
    """A norm before and after each sub-layer, of the embeddings and after the last layer (Kim et al. 2025)."""

    def initial(self) -> nn.Module:
        """Return what precedes the first layer of a stack: a norm."""
        return self.before


class LayerScale(PreNorm):
    """`x + lambda * Dropout(Sublayer(LayerNorm(x)))`, lambda a D-vector, small at first (Touvron et al. 2021)."""

    def __init__(self, norm: Norm, *, dropout: float, d_model: int, initial_scale: float) -> None:
        super().__init__(norm, dropout=dropout)
        self.factor = nn.Parameter(torch.full((d_model,), float(initial_scale)))

    def forward(self, x: Tensor, sublayer: Sublayer) -> Tensor:
        """Map (B, T, D) to (B, T, D)."""
        return x + self.factor * self.dropout(sublayer(self.norm(x)))


class HyperConnection(Numbered):
    """n residual streams, which every sub-layer mixes by what stands in them (Zhu et al. 2024, equations 1 to 13).

    The sub-layer reads a weighted sum of the streams, and what it returns is added to each with a weight, while the
    streams are mixed with each other; all of these weights are learned numbers plus a small part that depends on the
    streams. At first the sub-layer reads one stream, in turn, and adds to all. The streams begin as copies of the
    embeddings, and are added up after the last layer, before its norm.

    Args:
        norm: makes norms of D-vectors.
        dropout: on what the sub-layer returns.
        d_model: D.
        streams: n.

    Raises:
        ValueError: `streams` is less than one.
    """

    start: Tensor

    def __init__(self, norm: Norm, *, dropout: float, d_model: int, streams: int) -> None:
        super().__init__()
        if streams < 1:
            raise ValueError(f"model.residual.streams must be 1 or more, not {streams}")
        self.norm, self.streams_norm = norm(), norm()
        self.dropout = Dropout(dropout)
        self.streams = streams
        self.register_buffer("start", torch.eye(streams), persistent=False)
        self.read = nn.Parameter(torch.empty(streams))  # A_m, less the row of `start` that is read first
        self.mix = nn.Parameter(torch.empty(streams, streams))  # A_r, less `start`
        self.write = nn.Parameter(torch.empty(streams))  # B
        self.first = 0
        self.matrix = nn.Parameter(torch.empty(d_model, streams + 2))  # W_m, W_r and W_beta, side by side
        self.factors = nn.Parameter(torch.empty(2))  # s_alpha and s_beta
        self.reset_parameters()

    def set_place(self, place: Place) -> None:
        """Let the sub-layers of a stack read the streams in turn at first."""
        self.first = place.before % self.streams

    def reset_parameters(self) -> None:
        """Initialise as in the paper: fixed weights that read one stream and add to all, and nothing that depends."""
        for zeros in (self.read, self.mix, self.matrix):
            nn.init.zeros_(zeros)
        nn.init.ones_(self.write)
        nn.init.constant_(self.factors, 0.01)

    def initial(self) -> nn.Module:
        """Return what precedes the first layer of a stack: n copies of the embeddings."""
        return _Copies(self.streams)

    def forward(self, x: Tensor, sublayer: Sublayer) -> Tensor:
        """Map streams (B, T, n, D) to (B, T, n, D); the sub-layer maps (B, T, D) to (B, T, D)."""
        dynamic = torch.tanh(self.streams_norm(x) @ self.matrix)
        alpha, beta = self.factors
        read = self.start[self.first] + self.read + alpha * dynamic[..., 0]
        mix = self.start + self.mix + alpha * dynamic[..., 1:-1]
        write = self.write + beta * dynamic[..., -1]
        out = self.dropout(sublayer(self.norm((read[..., None] * x).sum(dim=2))))
        return mix.mT @ x + write[..., None] * out[:, :, None]

    def final_norm(self) -> nn.Module:
        """Return what follows the last layer of a stack: the sum of the streams, and a norm."""
        return _SumAndNorm(self.norm)


class _Copies(nn.Module):
    """Makes n streams of the embeddings."""

    def __init__(self, streams: int) -> None:
        super().__init__()
        self.streams = streams

    def forward(self, x: Tensor) -> Tensor:
        """Map (B, T, D) to (B, T, n, D)."""
        return x[:, :, None].expand(-1, -1, self.streams, -1)


class _SumAndNorm(nn.Module):
    """Adds up streams, and normalises the sum."""

    def __init__(self, norm: nn.Module) -> None:
        super().__init__()
        self.norm = norm

    def forward(self, x: Tensor) -> Tensor:
        """Map (B, T, n, D) to (B, T, D)."""
        out: Tensor = self.norm(x.sum(dim=2))
        return out
