"""Schemes that add to each score something that depends on the offset of its key from its query.

In self-attention only: source and target have no offset from each other.
"""

import math

import torch
from torch import Tensor, nn

from etude.model.positions.base import Position


class Alibi(Position):
    """Attention with linear biases (Press et al. 2022): head h adds -slope_h * |i - j| to the score of query i, key j.

    Encoder: the distance counts both ways alike (the paper has decoders only). Decoder self-attention: the distance
    back, as in the paper; the mask forbids the rest. Attention to the encoder: untouched. Any length; no parameters.
    """

    slopes: Tensor

    def __init__(self, causal: bool, *, heads: int) -> None:
        super().__init__(causal)
        self.register_buffer("slopes", torch.tensor(alibi_slopes(heads)), persistent=False)

    def score_bias(self, queries: Tensor, length: int, start: int) -> Tensor:
        """(H, T, S)."""
        return -self.slopes[:, None, None] * offsets(queries, length, start).abs()


class T5(Position):
    """Bucketed relative biases (Raffel et al. 2020, section 2.1): each head learns one number per bucket of offsets.

    Half of the buckets hold one distance each, the rest grow logarithmically up to `max_distance`; the last one takes
    all that is farther. Encoder: half of the buckets for keys before the query, half for keys after it. Decoder
    self-attention: all buckets for keys before it. Attention to the encoder: untouched. The layers of a stack share
    their numbers, as in T5; the scores themselves stay scaled as `model/scale` says, where T5 left them unscaled.

    Args:
        causal: True in the decoder.
        heads: H.
        buckets: in all.
        max_distance: from which all offsets share the last bucket.

    Raises:
        ValueError: the buckets cannot be divided so, or the exact ones already reach `max_distance`.
    """

    bounds: Tensor

    def __init__(self, causal: bool, *, heads: int, buckets: int, max_distance: int) -> None:
        super().__init__(causal)
        if buckets < 4 or buckets % 4:
            raise ValueError(f"buckets are halved twice in the encoder: they must be a multiple of 4, not {buckets}")
        if max_distance <= buckets // 2:
            raise ValueError(f"{buckets} buckets need a max_distance above {buckets // 2}, not {max_distance}")
        in_one_direction = buckets if causal else buckets // 2
        self.register_buffer("bounds", torch.tensor(_bounds(in_one_direction, max_distance)), persistent=False)
        # From zero: until training says otherwise, no offset is favoured.
        self.table = nn.Parameter(torch.zeros(heads, buckets))

    def score_bias(self, queries: Tensor, length: int, start: int) -> Tensor:
        """(H, T, S)."""
        return self.table[:, self.bucket(offsets(queries, length, start))]

    def bucket(self, offset: Tensor) -> Tensor:
        """The bucket of each offset j - i of a key j from a query i: same shape, whole numbers from zero."""
        if self.causal:
            return self._of_distance((-offset).clamp(min=0))
        return self._of_distance(offset.abs()) + (offset > 0) * (self.table.size(1) // 2)

    def _of_distance(self, distance: Tensor) -> Tensor:
        return torch.bucketize(distance, self.bounds, right=True)


def offsets(queries: Tensor, length: int, start: int) -> Tensor:
    """(T, S): j - i for the queries i = start, start + 1, ... (B, H, T, K) and the keys j = 0, 1, ... length - 1."""
    own = torch.arange(start, start + queries.size(2), device=queries.device)
    return torch.arange(length, device=queries.device) - own[:, None]


def alibi_slopes(heads: int) -> list[float]:
    """The slopes of Press et al. 2022: 2^(-8/n), 2^(-16/n), ... 2^-8 for n heads, n a power of two.

    For other n: those of the next lower power of two, then every other one of twice as many.
    """
    power = 1 << (heads.bit_length() - 1)
    doubled = [2 ** (-4 * step / power) for step in range(1, 2 * power + 1)]
    return doubled[1::2] + doubled[0::2][: heads - power]


def _bounds(buckets: int, max_distance: int) -> list[int]:
    """The smallest distance of each bucket but the first, for one direction."""
    exact = buckets // 2
    growth = max_distance / exact
    # Less a hair: a power that should be whole must not be rounded up past itself.
    later = (math.ceil(exact * growth ** (n / (buckets - exact)) - 1e-9) for n in range(buckets - exact))
    return [*range(1, exact), *later]
