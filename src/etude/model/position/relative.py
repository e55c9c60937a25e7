"""Relative position schemes, where each score depends on the offset of its key from its query.

They act in self-attention only, as source and target have no offset from each other.
"""

import math
from collections.abc import Sequence
from typing import Literal, cast

import torch
from torch import Tensor, nn

from etude.model.numbered import check_pattern
from etude.model.position.base import NO_POSITION, GrowingTable, Position


class Rotary(Position):
    """Rotary position embedding (Su et al. 2021, equations 14-16 and 34).

    The pair of components (2i, 2i+1) of a query or key at position pos is rotated by the angle pos / base^(2i/K). The
    product of two such vectors depends on their offset alone. Encoder and decoder self-attention: all queries and keys;
    a cache holds rotated keys. Attention to the encoder: untouched. Any length; no parameters.

    Raises:
        ValueError: d_k is odd, so that a component would have no partner to rotate with.
    """

    def __init__(self, causal: bool, *, d_k: int, base: float) -> None:
        super().__init__(causal)
        if d_k % 2:
            raise ValueError(f"rotary positions turn pairs: d_k must be even, not {d_k}: say model.d_k={d_k + 1}")
        self.d_k, self.base = d_k, base
        self.table = GrowingTable(self._compute_rows)

    def rotate(self, x: Tensor, start: int) -> Tensor:
        """Rotate queries or keys (B, H, T, K) to the positions start, start + 1, ..."""
        cosine, sine = self.table(start, x.size(2)).unbind(1)
        even, odd = x.unflatten(-1, (-1, 2)).unbind(-1)
        rotated = torch.stack([even * cosine - odd * sine, even * sine + odd * cosine], dim=-1)
        return rotated.flatten(-2).to(x.dtype)  # angles are float32 where x may be less

    def _compute_rows(self, length: int) -> Tensor:
        """Compute cosines and sines (length, 2, K/2), in float64 first: float32 cannot hold late angles."""
        timescale = self.base ** (torch.arange(0, self.d_k, 2, dtype=torch.float64) / self.d_k)
        angle = torch.arange(length, dtype=torch.float64)[:, None] / timescale
        return torch.stack([angle.cos(), angle.sin()], dim=1).float()


class PartialRotary(Rotary):
    """Rotary position embedding of the first components of each query and key alone (Black et al. 2022, section 2.1).

    Args:
        causal: True in the decoder.
        d_k: K.
        base: of the timescales.
        share: of the K components that are rotated, rounded to pairs.

    Raises:
        ValueError: `share` leaves no pair, or is above one.
    """

    def __init__(self, causal: bool, *, d_k: int, base: float, share: float) -> None:
        self.rotated = 2 * round(share * d_k / 2)
        if not 2 <= self.rotated <= d_k:
            raise ValueError(f"share={share} rotates {self.rotated} of {d_k} components: say model.position.share=1.0")
        super().__init__(causal, d_k=self.rotated, base=base)

    def rotate(self, x: Tensor, start: int) -> Tensor:
        """Rotate the first components of queries or keys (B, H, T, K)."""
        return torch.cat([super().rotate(x[..., : self.rotated], start), x[..., self.rotated :]], dim=-1)


class RotaryInSomeLayers(Rotary):
    """Rotary position embedding in some layers, no positions in the others (Yang et al. 2025).

    Args:
        causal: True in the decoder.
        d_k: K.
        base: of the timescales.
        pattern: "rope" or "none" for the first layers; the next ones repeat it.

    Raises:
        ValueError: the pattern is empty, or has another word.
    """

    def __init__(self, causal: bool, *, d_k: int, base: float, pattern: Sequence[Literal["rope", "none"]]) -> None:
        super().__init__(causal, d_k=d_k, base=base)
        self.pattern = check_pattern(pattern, "rope", "none")

    def at_layer(self, n: int) -> Position:
        """Return what the pattern says of layer n: this scheme, or none."""
        return self if self.pattern[n % len(self.pattern)] == "rope" else NO_POSITION


class Alibi(Position):
    """Attention with linear biases (Press et al. 2022): head h adds -slope_h * |i - j| to the score of query i, key j.

    Encoder: the distance is the same in both directions (the paper has decoders only). Decoder self-attention: the
    distance back, as in the paper; the rest is masked. Attention to the encoder: untouched. Any length; no parameters.
    """

    slopes: Tensor

    def __init__(self, causal: bool, *, heads: int) -> None:
        super().__init__(causal)
        self.register_buffer("slopes", torch.tensor(alibi_slopes(heads)), persistent=False)

    def score_bias(self, queries: Tensor, length: int, start: int) -> Tensor:
        """Compute the biases (H, T, S)."""
        return -self.slopes[:, None, None] * offsets(queries, length, start).abs()


class T5(Position):
    """Bucketed relative biases (Raffel et al. 2020, section 2.1): each head learns one bias per bucket of offsets.

    Half of the buckets hold one distance each, the others grow logarithmically up to `max_distance`; the last one also
    holds all that are larger. Encoder: half of the buckets for keys before the query, half for keys after it. Decoder
    self-attention: all buckets for keys before it. Attention to the encoder: untouched. The layers of a stack share
    their biases, as in T5; scores are scaled as `model/scale` says, where T5 left them unscaled.

    Args:
        causal: True in the decoder.
        heads: H.
        buckets: their total number.
        max_distance: where the last bucket would end if it did not hold all larger distances too.

    Raises:
        ValueError: `buckets` is no multiple of 4, or the exact buckets already reach `max_distance`.
    """

    bounds: Tensor

    def __init__(self, causal: bool, *, heads: int, buckets: int, max_distance: int) -> None:
        super().__init__(causal)
        if buckets < 4 or buckets % 4:
            raise ValueError(
                f"buckets are halved twice in the encoder: they must be a multiple of 4, not {buckets}: "
                f"say model.position.buckets={max(4, buckets - buckets % 4)}"
            )
        if max_distance <= buckets // 2:
            raise ValueError(f"{buckets} buckets need a max_distance above {buckets // 2}, not {max_distance}")
        self.heads, self.buckets, self.max_distance = heads, buckets, max_distance
        in_one_direction = buckets if causal else buckets // 2
        self.register_buffer("bounds", torch.tensor(_bucket_bounds(in_one_direction, max_distance)), persistent=False)

    def for_layers(self, n_layers: int) -> Position:
        """Create the biases, zero so that at first no offset is favoured, and return this scheme."""
        self.table = nn.Parameter(torch.zeros(self.heads, self.buckets))
        return self

    def score_bias(self, queries: Tensor, length: int, start: int) -> Tensor:
        """Look up the biases (H, T, S)."""
        return self.table[:, self.bucket(offsets(queries, length, start))]

    def bucket(self, offset: Tensor) -> Tensor:
        """Return the bucket, counted from 0, of each offset j - i of a key j from a query i; same shape."""
        if self.causal:
            return self._bucket_distance((-offset).clamp(min=0))
        return self._bucket_distance(offset.abs()) + (offset > 0) * (self.buckets // 2)

    def _bucket_distance(self, distance: Tensor) -> Tensor:
        return torch.bucketize(distance, self.bounds, right=True)


class Shaw(Position):
    """Relative position representations (Shaw et al. 2018): one learned vector a_K for each offset clipped to +-`clip`.

    The vector of an offset is added to the key inside the scaled product (their equation 4), and so adds its product
    with the scaled query to the score. Heads share the vectors, layers do not. The vectors a_V, which would be added to
    the values, are left out: their Table 3 finds keys alone as good. Encoder: offsets in both directions. Decoder
    self-attention: offsets back; the vectors of later keys are there, as in the paper, and never used. Attention to the
    encoder: untouched. Any length.

    Args:
        causal: True in the decoder.
        d_k: K.
        clip: k, the distance from which all offsets share a vector.

    Raises:
        ValueError: clip is less than one.
    """

    def __init__(self, causal: bool, *, d_k: int, clip: int) -> None:
        super().__init__(causal)
        if clip < 1:
            raise ValueError(f"relative positions are told apart up to a distance of at least 1, not clip={clip}")
        self.d_k, self.clip = d_k, clip
        self.layers = nn.ModuleList()

    def for_layers(self, n_layers: int) -> Position:
        """Create the vectors of each of `n_layers`, and return this scheme."""
        self.layers = nn.ModuleList(_ShawLayer(self.causal, self.d_k, self.clip) for _ in range(n_layers))
        return self

    def at_layer(self, n: int) -> Position:
        """Return the scheme with the vectors of layer n."""
        return cast(Position, self.layers[n])

    def score_flops(self, queries: int, keys: int, d_k: int) -> int:
        """Count the floating-point operations of one layer and head."""
        return self.at_layer(0).score_flops(queries, keys, d_k)


class _ShawLayer(Position):
    """The vectors of one layer."""

    def __init__(self, causal: bool, d_k: int, clip: int) -> None:
        super().__init__(causal)
        self.clip = clip
        self.table = nn.Parameter(torch.empty(2 * clip + 1, d_k))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Initialise the vectors."""
        # Short vectors: they add 1/d_k to scores of unit variance, so that content dominates and order still shows.
        nn.init.normal_(self.table, std=self.table.size(1) ** -0.5)

    def score_bias(self, queries: Tensor, length: int, start: int) -> Tensor:
        """Compute the biases (B, H, T, S): the products of each query with 2k + 1 vectors, gathered for each key."""
        products = queries @ self.table.T
        row = offsets(queries, length, start).clamp(-self.clip, self.clip) + self.clip
        return products.gather(-1, row.expand(*products.shape[:2], -1, -1))

    def score_flops(self, queries: int, keys: int, d_k: int) -> int:
        """Count two for each query, vector and component, whatever the number of keys."""
        return 2 * queries * self.table.size(0) * d_k


def offsets(queries: Tensor, length: int, start: int) -> Tensor:
    """Compute j - i (T, S) for the queries i = start, start + 1, ... (B, H, T, K) and keys j = 0, ..., length - 1."""
    query_positions = torch.arange(start, start + queries.size(2), device=queries.device)
    return torch.arange(length, device=queries.device) - query_positions[:, None]


def alibi_slopes(heads: int) -> list[float]:
    """Compute the slopes of Press et al. 2022: 2^(-8/n), 2^(-16/n), ... 2^-8 for n heads, n a power of two.

    For other n: those of the next lower power of two, then every other one of twice as many.
    """
    power = 1 << (heads.bit_length() - 1)
    doubled = [2 ** (-4 * step / power) for step in range(1, 2 * power + 1)]
    return doubled[1::2] + doubled[0::2][: heads - power]


def _bucket_bounds(buckets: int, max_distance: int) -> list[int]:
    """Compute the smallest distance of each bucket but the first, for one direction."""
    exact = buckets // 2
    growth = max_distance / exact
    # 1e-9 less, as rounding errors must not lift a power that should be whole to the next number.
    logarithmic = (math.ceil(exact * growth ** (n / (buckets - exact)) - 1e-9) for n in range(buckets - exact))
    return [*range(1, exact), *logarithmic]
