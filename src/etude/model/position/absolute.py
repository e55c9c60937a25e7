"""Absolute position schemes, which add a vector to each embedding (section 3.5).

They are the same in encoder and decoder, and reach queries, keys and values of every attention, across stacks too.
"""

import torch
from torch import Tensor

from etude.model.embedding import WordTable
from etude.model.position.base import GrowingTable, Position


class Sinusoidal(Position):
    """Fixed sinusoids added to the embeddings (section 3.5), interleaved as the paper prints them.

    PE(pos, 2i) = sin(pos / 10000^(2i/D)), PE(pos, 2i+1) = cos(pos / 10000^(2i/D)). Any length; no parameters.

    Raises:
        ValueError: d_model is odd, so that a sine would lack its cosine.
    """

    def __init__(self, causal: bool, *, d_model: int) -> None:
        super().__init__(causal)
        if d_model % 2:
            raise ValueError(
                f"sinusoidal positions come in pairs of sine and cosine: d_model must be even, not {d_model}: "
                f"say model.d_model={d_model + 1}"
            )
        self.pairs = d_model // 2
        self.table = GrowingTable(self._compute_rows)

    def add_to_embedding(self, x: Tensor, start: int) -> Tensor:
        """Add the sinusoids of the positions start, start + 1, ... to embeddings (B, T, D)."""
        return x + self.table(start, x.size(1))

    def _compute_rows(self, length: int) -> Tensor:
        """Compute the table (length, D), in float64 first: float32 cannot hold the angles of late positions."""
        pair = torch.arange(self.pairs, dtype=torch.float64)
        angle = torch.arange(length, dtype=torch.float64)[:, None] / 10000 ** self._exponents(pair)
        return self._combine(angle.sin(), angle.cos()).float()

    def _exponents(self, pair: Tensor) -> Tensor:
        """Exponent of each pair's timescale (D/2,)."""
        return pair / self.pairs

    def _combine(self, sines: Tensor, cosines: Tensor) -> Tensor:
        """Combine sines and cosines, both (length, D/2), to (length, D)."""
        return torch.stack([sines, cosines], dim=-1).flatten(1)


class SinusoidalT2T(Sinusoidal):
    """Fixed sinusoids as in the published code, tensor2tensor in 2017: all sines, then all cosines.

    PE(pos, i) = sin(pos / 10000^(i/(D/2-1))), PE(pos, D/2+i) = cos(same). The last timescale is exactly 10000; that of
    the paper's formula is a little less.
    """

    def _exponents(self, pair: Tensor) -> Tensor:
        return pair / max(self.pairs - 1, 1)

    def _combine(self, sines: Tensor, cosines: Tensor) -> Tensor:
        return torch.cat([sines, cosines], dim=1)


class Learned(Position):
    """A learned vector for each position, added to the embeddings (Table 3 row (E); Gehring et al. 2017).

    It is initialised as token embeddings are, and multiplied by sqrt(D) as they are (section 3.4), so that both have
    the same magnitude; encoder and decoder have a table each. The paper does not say how its row (E) did it: the code
    published with it had no learned positions, and those added in June 2018 were not multiplied. Positions from
    `max_length` on do not exist.

    Raises:
        ValueError: in `add_to_embedding`, a position past the table.
    """

    def __init__(self, causal: bool, *, d_model: int, max_length: int) -> None:
        super().__init__(causal)
        self.table = WordTable(max_length, d_model)
        self.factor = d_model**0.5

    def add_to_embedding(self, x: Tensor, start: int) -> Tensor:
        """Add the learned vectors of the positions start, start + 1, ... to embeddings (B, T, D)."""
        end = start + x.size(1)
        if end > self.table.num_embeddings:
            raise ValueError(
                f"a sequence of {end} positions does not fit the learned table of {self.table.num_embeddings}: "
                "raise model.position.max_length"
            )
        return x + self.table.weight[start:end] * self.factor


class LearnedUnscaled(Learned):
    """Learned vectors that are added as they are, without the factor sqrt(D) (Radford et al. 2019)."""

    def __init__(self, causal: bool, *, d_model: int, max_length: int) -> None:
        super().__init__(causal, d_model=d_model, max_length=max_length)
        self.factor = 1.0
