"""Convolutional encoder and decoder: stacks of gated convolutions (Gehring et al. 2017).

Each layer is wrapped by `model/residual`. Gehring et al. scaled every sum by sqrt(0.5) and normalised weights instead.
"""

from functools import partial
from typing import cast

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from etude.model.block import cross_attend
from etude.model.cache import NO_CACHE, Cache
from etude.model.dropout import Dropout
from etude.model.numbered import number_layers
from etude.model.parts import Parts
from etude.model.position import Position
from etude.model.state import SourceRows


def see_neighbours(x: Tensor, kernel: int, mask: Tensor, cache: Cache) -> Tensor:
    """Add to `x` what a convolution over `kernel` positions sees beside it: (B, T, D) to (B, T + k - 1, D).

    Padding, and what is beyond the ends, is read as zeros.

    Args:
        x: (B, T, D).
        kernel: k, odd.
        mask: that of self-attention; what matters is which positions nobody may attend to.
        cache: of a decoder, `LastPositions` with the k - 1 positions before; without a cache, k // 2 on either side.
    """
    length = x.size(1)
    real = mask.any(dim=-2)[..., -length:, None]  # (B, 1, T, 1), or (T, 1) in a decoder
    channels = x[:, None].masked_fill(~real, 0.0)
    seen, _ = cache.read(lambda: (channels, channels[..., :0]))
    side = (length + kernel - 1 - seen.size(2)) // 2  # none with a cache, which has what comes before
    return F.pad(seen[:, 0], (0, 0, side, side))


class GatedConvolution(nn.Module):
    """`(x * W) . sigmoid(x * V)`: a convolution over `kernel` positions, then a gated linear unit.

    Args:
        d_model: D.
        kernel: k, the number of positions that it covers.
        separable: True: each channel is convolved by itself (k D weights), then channels are mixed (2 D^2 weights;
            Chollet 2017; "separable" in section 4 of the paper). False: both at once (2 k D^2 weights).
    """

    def __init__(self, *, d_model: int, kernel: int, separable: bool) -> None:
        super().__init__()
        each = nn.Conv1d(d_model, d_model, kernel, groups=d_model) if separable else nn.Identity()
        self.each, self.mix = each, nn.Conv1d(d_model, 2 * d_model, 1 if separable else kernel)

    def forward(self, x: Tensor) -> Tensor:
        """Map (B, S + k - 1, D) to (B, S, D), without padding at the ends."""
        return F.glu(self.mix(self.each(x.transpose(1, 2))).transpose(1, 2), dim=-1)


class ConvolutionEncoderLayer(nn.Module):
    """Encoder layer: a gated convolution over k // 2 neighbours on either side."""

    def __init__(self, parts: Parts, *, d_model: int, kernel: int, separable: bool) -> None:
        super().__init__()
        self.side = kernel // 2
        self.convolution = GatedConvolution(d_model=d_model, kernel=kernel, separable=separable)
        self.convolution_residual = parts.residual()

    def forward(self, x: Tensor, padding: Tensor) -> Tensor:
        """Map (B, S, D) to (B, S, D); padding (B, S, 1) is True where there is no real token, and is read as zeros."""
        return self.convolution_residual(x, lambda h: self.convolution(self._pad(h.masked_fill(padding, 0.0))))

    def _pad(self, x: Tensor) -> Tensor:
        return F.pad(x, (0, 0, self.side, self.side))


class ConvolutionEncoder(nn.Module):
    """A stack of gated convolutions over k // 2 neighbours on either side.

    Args:
        parts: factories of what its layers are made of.
        n_layers: N.
        d_model: D.
        kernel: k.
        separable: see `GatedConvolution`.

    Raises:
        ValueError: k is even, so that there is no middle position.
    """

    is_read = True

    def __init__(self, parts: Parts, *, n_layers: int, d_model: int, kernel: int, separable: bool) -> None:
        super().__init__()
        if kernel % 2 == 0:
            raise ValueError(
                f"the kernel of an encoder must be odd, not {kernel}: say model.encoder.kernel={kernel + 1}"
            )
        self.dropout, self.initial = Dropout(parts.dropout), parts.begin()
        self.position: Position = parts.position(False)
        layer = partial(ConvolutionEncoderLayer, parts, d_model=d_model, kernel=kernel, separable=separable)
        self.layers = nn.ModuleList(layer() for _ in range(n_layers))
        number_layers(self.layers, "encoder")
        self.final_norm: nn.Module = parts.residual().final_norm()

    def forward(self, x: Tensor, mask: Tensor) -> Tensor:
        """Encode embeddings (B, S, D) with their mask (B, S), True at real tokens; returns (B, S, D)."""
        x = self.initial(self.dropout(self.position.add_to_embedding(x, 0)))
        for layer in self.layers:
            x = layer(x, ~mask[..., None])
        out: Tensor = self.final_norm(x)
        return out


class ConvolutionLayer(nn.Module):
    """Decoder layer: a gated convolution over the last k positions, then attention to the encoder if there is one."""

    def __init__(self, parts: Parts, reads: bool, *, d_model: int, kernel: int, separable: bool) -> None:
        super().__init__()
        self.convolution = GatedConvolution(d_model=d_model, kernel=kernel, separable=separable)
        self.convolution_residual = parts.residual()
        self.cross = _Cross(parts) if reads else _NoCross()

    def start(self, zeros: Tensor) -> "Past":
        """Create the state of this layer, with `zeros` (B, k - 1, D) before the first position."""
        return Past(zeros, self.cross.start())

    def forward(self, x: Tensor, source: SourceRows, past: "Past") -> Tensor:
        """Map (B, T, D) to (B, T, D); `x` follows the positions in `past`, and is added to it."""
        x = self.convolution_residual(x, lambda h: self.convolution(past.before(h)))
        out: Tensor = self.cross(x, source, past.cross)
        return out


class _Cross(nn.Module):
    """Attention to the encoder with its residual connection."""

    def __init__(self, parts: Parts) -> None:
        super().__init__()
        self.attention, self.residual, self.read = parts.attention(is_cross=True), parts.residual(), parts.read()

    def start(self) -> Cache:
        return cast(Cache, self.attention.start())

    def forward(self, x: Tensor, source: SourceRows, cache: Cache) -> Tensor:
        out: Tensor = self.residual(x, lambda h: cross_attend(self.attention, self.read, h, source, cache))
        return out


class _NoCross(nn.Module):
    """No attention, as there is no encoder."""

    def start(self) -> Cache:
        return NO_CACHE

    def forward(self, x: Tensor, source: SourceRows, cache: Cache) -> Tensor:
        return x


class ConvolutionDecoder(nn.Module):
    """A stack of gated convolutions over the last k positions, each followed by attention to the encoder.

    Args:
        parts: factories of what its layers are made of.
        reads: whether there is an encoder to attend to.
        n_layers: N.
        d_model: D.
        kernel: k.
        separable: see `GatedConvolution`.
    """

    def __init__(self, parts: Parts, reads: bool, *, n_layers: int, d_model: int, kernel: int, separable: bool) -> None:
        super().__init__()
        self.past = kernel - 1
        self.dropout, self.initial = Dropout(parts.dropout), parts.begin()
        self.position: Position = parts.position(True)
        layer = partial(ConvolutionLayer, parts, reads, d_model=d_model, kernel=kernel, separable=separable)
        self.layers = nn.ModuleList(layer() for _ in range(n_layers))
        number_layers(self.layers, "decoder")
        self.final_norm: nn.Module = parts.residual().final_norm()

    def start(self, memory: Tensor, mask: Tensor) -> "ConvolutionState":
        """Begin decoding from the encoder's output (B, S, D) and its mask (B, S)."""
        zeros = memory.new_zeros(memory.size(0), self.past, memory.size(-1))
        return ConvolutionState(memory, mask, [cast(ConvolutionLayer, layer).start(zeros) for layer in self.layers])

    def forward(self, x: Tensor, state: "ConvolutionState") -> Tensor:
        """Decode embeddings (B, T, D) of the tokens that follow those in `state`, and add them to it; (B, T, D)."""
        x = self.initial(self.dropout(self.position.add_to_embedding(x, state.length)))
        state.length += x.size(1)
        for layer, past in zip(self.layers, state.pasts, strict=True):
            x = layer(x, state.source, past)
        out: Tensor = self.final_norm(x)
        return out


class Past:
    """State of one layer: the last k - 1 inputs of its convolution, and the cache of its attention to the source."""

    def __init__(self, last: Tensor, cross: Cache) -> None:
        self.last, self.cross = last, cross  # last: (R, k - 1, D), at first zeros

    def before(self, x: Tensor) -> Tensor:
        """Prepend the last k - 1 positions to `x` (R, T, D), then keep the last k - 1 of the result in their place."""
        extended = torch.cat([self.last, x], dim=1)
        self.last = extended[:, x.size(1) :]
        return extended

    def reorder(self, rows: Tensor, sentences: Tensor | None) -> None:
        """Keep `rows` (R',), and of the source `sentences` (A',), each in that order; None: all sentences."""
        self.last = self.last.index_select(0, rows)
        if sentences is not None:
            self.cross.reorder(sentences)


class ConvolutionState:
    """State of decoding R rows, each a source sentence with the target tokens decoded so far."""

    def __init__(self, memory: Tensor, mask: Tensor, pasts: list[Past]) -> None:
        self.source, self.pasts = SourceRows(memory, mask), pasts
        self.length = 0  # target tokens decoded so far

    def reorder(self, rows: Tensor) -> None:
        """Keep `rows` (R',) in that order, in place; a row may be repeated (beams) or left out (finished sentences)."""
        sentences = self.source.reorder(rows)
        for past in self.pasts:
            past.reorder(rows, sentences)
