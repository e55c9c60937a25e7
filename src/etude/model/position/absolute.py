"""Schemes that add a vector to each embedding (section 3.5).

Encoder and decoder alike; what is added reaches queries, keys and values of every attention, across stacks too.
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
                f"sinusoidal positions come in pairs of sine and cosine: d_model must be even, not {d_model}"
            )
        self.pairs = d_model // 2
        self.table = GrowingTable(self._rows)

    def add_to_embedding(self, x: Tensor, start: int) -> Tensor:
        """Embeddings (B, T, D) plus the sinusoids of the positions start, start + 1, ..."""
        return x + self.table(start, x.size(1))

    def _rows(self, length: int) -> Tensor:
        """(length, D). In float64 first: the angle of a late position has no digits to spare."""
        pair = torch.arange(self.pairs, dtype=torch.float64)
        angle = torch.arange(length, dtype=torch.float64)[:, None] / 10000 ** self._exponent(pair)
        return self._lay_out(angle.sin(), angle.cos()).float()

    def _exponent(self, pair: Tensor) -> Tensor:
        """Of the timescale of each pair (D/2,)."""
        return pair / self.pairs

    def _lay_out(self, sines: Tensor, cosines: Tensor) -> Tensor:
        """Both (length, D/2), as (length, D)."""
        return torch.stack([sines, cosines], dim=-1).flatten(1)


class SinusoidalT2T(Sinusoidal):
    """The sinusoids of the published code, tensor2tensor in 2017: the same idea, laid out otherwise.

    PE(pos, i) = sin(pos / 10000^(i/(D/2-1))), PE(pos, D/2+i) = cos(same): all sines, then all cosines, and the last
    timescale is exactly 10000, where the text stops short of it.
    """

    def _exponent(self, pair: Tensor) -> Tensor:
        return pair / max(self.pairs - 1, 1)

    def _lay_out(self, sines: Tensor, cosines: Tensor) -> Tensor:
        return torch.cat([sines, cosines], dim=1)


class Learned(Position):
    """A learned vector for each position, added to the embeddings (Table 3 row (E); Gehring et al. 2017).

    It is drawn as word embeddings are, and multiplied by sqrt(D) as they are (section 3.4), so that neither drowns the
    other; encoder and decoder hold a table each. The paper does not say how its row (E) did it: the code published with
    it had no learned positions, and those that came in June 2018 were not multiplied. Positions from `max_length` on do
    not exist.

    Raises:
        ValueError: in `add_to_embedding`, a position past the table.
    """

    def __init__(self, causal: bool, *, d_model: int, max_length: int) -> None:
        super().__init__(causal)
        self.table = WordTable(max_length, d_model)
        self.factor = d_model**0.5

    def add_to_embedding(self, x: Tensor, start: int) -> Tensor:
        """Embeddings (B, T, D) plus the learned vectors of the positions start, start + 1, ..."""
        end = start + x.size(1)
        if end > self.table.num_embeddings:
            raise ValueError(
                f"a sequence of {end} positions does not fit the learned table of {self.table.num_embeddings}: "
                "raise model.position.max_length"
            )
        return x + self.table.weight[start:end] * self.factor
