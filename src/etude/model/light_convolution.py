"""Lightweight and dynamic convolutions in place of self-attention (Wu et al. 2019)."""

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from etude.model.attention import MultiHeadAttention
from etude.model.cache import NO_CACHE, Cache, LastPositions
from etude.model.convolution import see_neighbours
from etude.model.parts import Factory
from etude.model.position import Position


def replace_self_attention(
    scale: nn.Module,
    backend: nn.Module,
    is_cross: bool,
    *,
    d_model: int,
    heads: int,
    d_k: int,
    d_v: int,
    bias: bool,
    convolution: Factory,
) -> nn.Module:
    """Make what `convolution` makes in place of self-attention, and multi-head attention to the encoder.

    Args:
        scale, backend, is_cross, d_model, heads, d_k, d_v, bias: see `MultiHeadAttention`.
        convolution: makes a module with the interface of an attention.
    """
    if is_cross:
        return MultiHeadAttention(scale, backend, True, d_model=d_model, heads=heads, d_k=d_k, d_v=d_v, bias=bias)
    made: nn.Module = convolution()
    return made


class LightweightConvolution(nn.Module):
    """`conv(GLU(x W_I)) W_O`: each channel a weighted mean of its neighbours, by weights that a softmax makes.

    In the encoder a position sees k // 2 others on either side, in the decoder the k - 1 before it; padding, and what
    is beyond the ends, counts as zeros.

    Args:
        d_model: D, the channels.
        kernel: k, the positions that it covers.
        kernels: H; each is that of D / H neighbouring channels.
        pointwise: whether channels are mixed by one more matrix before W_O, as in Narang et al. (2021).
        bias: whether the matrices have one.

    Raises:
        ValueError: k is even, so that there is no middle position, or H does not divide D.
    """

    def __init__(self, *, d_model: int, kernel: int, kernels: int, pointwise: bool, bias: bool) -> None:
        super().__init__()
        if kernel % 2 == 0:
            raise ValueError(f"a kernel has a middle: it must be odd, not {kernel}: say {_KEY}.kernel={kernel + 1}")
        if d_model % kernels:
            raise ValueError(
                f"{_KEY}.kernels={kernels} must divide model.d_model={d_model}: each is for as many channels: "
                f"say {_KEY}.kernels={d_model}"
            )
        self.kernel, self.kernels = kernel, kernels
        self.in_proj = nn.Linear(d_model, 2 * d_model, bias=bias)
        self.pointwise = nn.Linear(d_model, d_model, bias=bias) if pointwise else nn.Identity()
        self.out_proj = nn.Linear(d_model, d_model, bias=bias)
        self._make_kernels(d_model, bias)

    def _make_kernels(self, d_model: int, bias: bool) -> None:
        self.weight = nn.Parameter(torch.empty(self.kernels, self.kernel))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw the kernels as matrices are drawn (Glorot and Bengio 2010)."""
        nn.init.xavier_uniform_(self.weight)

    def _kernel_scores(self, x: Tensor) -> Tensor:
        """Return what the softmax makes the kernels of, broadcastable to (B, T, H, k), for channels (B, T, D)."""
        return self.weight

    def start(self) -> Cache:
        """Create the cache of a decoder layer, which keeps what the next position sees."""
        return LastPositions(self.kernel - 1)

    def forward(self, x: Tensor, context: Tensor, mask: Tensor, position: Position, cache: Cache = NO_CACHE) -> Tensor:
        """Map (B, T, D) to (B, T, D); of the mask, it matters which positions nobody may attend to."""
        length, channels = x.size(1), F.glu(self.in_proj(x), dim=-1)
        padded = see_neighbours(channels, self.kernel, mask, cache).unflatten(-1, (self.kernels, -1))
        weights = self._kernel_scores(channels).softmax(dim=-1)[..., None, :]
        out = sum(
            (weights[..., j] * padded[:, j : j + length] for j in range(self.kernel)),
            torch.zeros_like(padded[:, :length]),
        )
        mixed: Tensor = self.out_proj(self.pointwise(out.flatten(-2)))
        return mixed


class DynamicConvolution(LightweightConvolution):
    """A lightweight convolution whose kernels are made anew at each position, from what stands there."""

    def _make_kernels(self, d_model: int, bias: bool) -> None:
        self.kernel_proj = nn.Linear(d_model, self.kernels * self.kernel, bias=bias)

    def reset_parameters(self) -> None:
        """Leave all to `model/init`: there are linear layers only."""

    def _kernel_scores(self, x: Tensor) -> Tensor:
        scores: Tensor = self.kernel_proj(x).unflatten(-1, (self.kernels, self.kernel))
        return scores


_KEY = "model.attention.convolution"
