"""Convolutional encoder and decoder: stacks of gated convolutions (Gehring et al. 2017).

Each layer is wrapped as `model/residual` says, where they halved the variance of every sum and normalised weights.
"""

from functools import partial
from typing import cast

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from etude.model.block import cross_attend
from etude.model.cache import NO_CACHE, Cache
from etude.model.dropout import Dropout
from etude.model.parts import Parts
from etude.model.position import Position
from etude.model.state import SourceRows


class GatedConvolution(nn.Module):
    """`(x * W) . sigmoid(x * V)`, each over `kernel` neighbours: a convolution and a gated linear unit.

    Args:
        d_model: D.
        kernel: k, how many positions it sees.
        separable: whether each channel is convolved by itself first, k D entries, and channels are mixed after that,
            2 D^2 (Chollet 2017; "separable" in section 4 of the paper); else both at once, 2 k D^2.
    """

    def __init__(self, *, d_model: int, kernel: int, separable: bool) -> None:
        super().__init__()
        each = nn.Conv1d(d_model, d_model, kernel, groups=d_model) if separable else nn.Identity()
        self.each, self.mix = each, nn.Conv1d(d_model, 2 * d_model, 1 if separable else kernel)

    def forward(self, x: Tensor) -> Tensor:
        """(B, S + k - 1, D) to (B, S, D): from the neighbourhoods that are whole."""
        return F.glu(self.mix(self.each(x.transpose(1, 2))).transpose(1, 2), dim=-1)


class ConvolutionEncoderLayer(nn.Module):
    """One of the encoder: a gated convolution over k // 2 neighbours on either side."""

    def __init__(self, parts: Parts, *, d_model: int, kernel: int, separable: bool) -> None:
        super().__init__()
        self.side = kernel // 2
        self.convolution = GatedConvolution(d_model=d_model, kernel=kernel, separable=separable)
        self.convolution_residual = parts.residual()

    def forward(self, x: Tensor, padding: Tensor) -> Tensor:
        """(B, S, D) to (B, S, D); padding (B, S, 1) is True where no real token stands, and counts as zero."""
        return self.convolution_residual(x, lambda h: self.convolution(self._around(h.masked_fill(padding, 0.0))))

    def _around(self, x: Tensor) -> Tensor:
        return F.pad(x, (0, 0, self.side, self.side))


class ConvolutionEncoder(nn.Module):
    """A stack of gated convolutions, each position seeing k // 2 neighbours on either side.

    Args:
        parts: of the model.
        n_layers: N.
        d_model: D.
        kernel: k.
        separable: see `GatedConvolution`.

    Raises:
        ValueError: k is even, and has no middle.
    """

    is_read = True

    def __init__(self, parts: Parts, *, n_layers: int, d_model: int, kernel: int, separable: bool) -> None:
        super().__init__()
        if kernel % 2 == 0:
            raise ValueError(f"kernel={kernel} is even: an encoder's neighbourhood has a middle")
        self.dropout = Dropout(parts.dropout)
        self.position: Position = parts.position(False)
        layer = partial(ConvolutionEncoderLayer, parts, d_model=d_model, kernel=kernel, separable=separable)
        self.layers = nn.ModuleList(layer() for _ in range(n_layers))
        self.final_norm: nn.Module = parts.residual().final_norm()

    def forward(self, x: Tensor, mask: Tensor) -> Tensor:
        """Embeddings (B, S, D) and their mask (B, S), True at real tokens, to (B, S, D)."""
        x = self.dropout(self.position.add_to_embedding(x, 0))
        for layer in self.layers:
            x = layer(x, ~mask[..., None])
        closed: Tensor = self.final_norm(x)
        return closed


class ConvolutionLayer(nn.Module):
    """One of the decoder: a gated convolution over the last k positions, then attention to an encoder."""

    def __init__(self, parts: Parts, reads: bool, *, d_model: int, kernel: int, separable: bool) -> None:
        super().__init__()
        self.convolution = GatedConvolution(d_model=d_model, kernel=kernel, separable=separable)
        self.convolution_residual = parts.residual()
        self.cross = _Cross(parts) if reads else _NoCross()

    def start(self, nothing: Tensor) -> "Past":
        """With zeros (B, k - 1, D) before the first position."""
        return Past(nothing, self.cross.start())

    def forward(self, x: Tensor, source: SourceRows, past: "Past") -> Tensor:
        """(B, T, D) to (B, T, D), after the positions in `past`."""
        x = self.convolution_residual(x, lambda h: self.convolution(past.before(h)))
        looked: Tensor = self.cross(x, source, past.cross)
        return looked


class _Cross(nn.Module):
    """Attention to the encoder."""

    def __init__(self, parts: Parts) -> None:
        super().__init__()
        self.attention, self.residual = parts.attention(is_cross=True), parts.residual()

    def start(self) -> Cache:
        return cast(Cache, self.attention.start())

    def forward(self, x: Tensor, source: SourceRows, cache: Cache) -> Tensor:
        looked: Tensor = self.residual(x, lambda h: cross_attend(self.attention, h, source, cache))
        return looked


class _NoCross(nn.Module):
    """No encoder to cross_attend at."""

    def start(self) -> Cache:
        return NO_CACHE

    def forward(self, x: Tensor, source: SourceRows, cache: Cache) -> Tensor:
        return x


class ConvolutionDecoder(nn.Module):
    """A stack of gated convolutions that see the last k positions, each followed by attention to the encoder.

    Args:
        parts: of the model.
        reads: whether there is an encoder to cross_attend at.
        n_layers: N.
        d_model: D.
        kernel: k.
        separable: see `GatedConvolution`.
    """

    def __init__(self, parts: Parts, reads: bool, *, n_layers: int, d_model: int, kernel: int, separable: bool) -> None:
        super().__init__()
        self.past = kernel - 1
        self.dropout = Dropout(parts.dropout)
        self.position: Position = parts.position(True)
        layer = partial(ConvolutionLayer, parts, reads, d_model=d_model, kernel=kernel, separable=separable)
        self.layers = nn.ModuleList(layer() for _ in range(n_layers))
        self.final_norm: nn.Module = parts.residual().final_norm()

    def start(self, memory: Tensor, mask: Tensor) -> "ConvolutionState":
        """Nothing is decoded yet of the sentences with this encoder's output (B, S, D) and mask (B, S)."""
        nothing = memory.new_zeros(memory.size(0), self.past, memory.size(2))
        return ConvolutionState(memory, mask, [cast(ConvolutionLayer, layer).start(nothing) for layer in self.layers])

    def forward(self, x: Tensor, state: "ConvolutionState") -> Tensor:
        """Embeddings (B, T, D) of the tokens after those that `state` remembers, to (B, T, D)."""
        x = self.dropout(self.position.add_to_embedding(x, state.length))
        state.length += x.size(1)
        for layer, past in zip(self.layers, state.pasts, strict=True):
            x = layer(x, state.source, past)
        closed: Tensor = self.final_norm(x)
        return closed


class Past:
    """What one layer remembers: the last k - 1 positions that went into its convolution, and keys of the source."""

    def __init__(self, last: Tensor, cross: Cache) -> None:
        self.last, self.cross = last, cross  # (R, k - 1, D), at first zeros

    def before(self, x: Tensor) -> Tensor:
        """(R, T, D) with the k - 1 positions before it, which are forgotten for its own last ones."""
        whole = torch.cat([self.last, x], dim=1)
        self.last = whole[:, x.size(1) :]
        return whole

    def reorder(self, rows: Tensor, left: Tensor | None) -> None:
        """Keep `rows` (R',) in that order; `left`: of the sentences, if not all."""
        self.last = self.last.index_select(0, rows)
        if left is not None:
            self.cross.reorder(left)


class ConvolutionState:
    """Where the decoding of a batch stands: R rows, each a source with what the layers remember of its target."""

    def __init__(self, memory: Tensor, mask: Tensor, pasts: list[Past]) -> None:
        self.source, self.pasts = SourceRows(memory, mask), pasts
        self.length = 0  # target tokens fed so far

    def reorder(self, rows: Tensor) -> None:
        """Keep `rows` (R',) in that order, in place; a row may be repeated (beams) or left out (finished sentences)."""
        left = self.source.reorder(rows)
        for past in self.pasts:
            past.reorder(rows, left)
