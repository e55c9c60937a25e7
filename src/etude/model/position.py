"""Where the order of the words comes from (section 3.5).

A position scheme may act in three places: on the embeddings, on queries and keys, and on the attention scores. The base
class does nothing in each of them; a scheme overrides what it needs. One is built for the encoder and one for the
decoder, each shared by its layers unless it says otherwise. Attention from decoder to encoder is given `NO_POSITION`,
since source and target share no axis: what is added to the embeddings reaches it, what acts on pairs does not.
"""

import torch
from torch import Tensor, nn


class Position(nn.Module):
    """The do-nothing answers. `start` is the number of positions already decoded; `causal` is True in the decoder."""

    def __init__(self, causal: bool) -> None:
        super().__init__()
        self.causal = causal

    def embed(self, x: Tensor, start: int) -> Tensor:
        """Embeddings (B, T, D) of the positions start, start + 1, ..."""
        return x

    def turn(self, x: Tensor, start: int) -> Tensor:
        """Queries or keys (B, H, T, K) of the positions start, start + 1, ..."""
        return x

    def bias(self, queries: Tensor, length: int, start: int) -> Tensor | None:
        """What is added to the scores: broadcastable to (B, H, T, S), or None for nothing.

        Args:
            queries: (B, H, T, K), scaled, of the positions start, start + 1, ...
            length: S, the positions 0, 1, ... that are looked at.
            start: the first query's position.
        """
        return None

    def at_layer(self, n: int) -> "Position":
        """The scheme as layer n = 0, 1, ... of the stack sees it."""
        return self

    def score_flops(self, pairs: int, d_k: int) -> int:
        """Floating-point operations of the matrix products in `bias`, for `pairs` of a query and a key in each head."""
        return 0


NO_POSITION = Position(causal=False)


class Sinusoidal(Position):
    """Fixed sinusoids added to the embeddings (section 3.5), interleaved as the paper prints them.

    PE(pos, 2i) = sin(pos / 10000^(2i/D)), PE(pos, 2i+1) = cos(pos / 10000^(2i/D)). Any length; no parameters.

    Raises:
        ValueError: d_model is odd, so that a sine would lack its cosine.
    """

    table: Tensor

    def __init__(self, causal: bool, *, d_model: int) -> None:
        super().__init__(causal)
        if d_model % 2:
            raise ValueError(
                f"sinusoidal positions come in pairs of sine and cosine: d_model must be even, not {d_model}"
            )
        self.d_model = d_model
        self.register_buffer("table", self._sinusoids(128), persistent=False)

    def embed(self, x: Tensor, start: int) -> Tensor:
        """Embeddings (B, T, D) plus the sinusoids of the positions start, start + 1, ..."""
        end = start + x.size(1)
        if end > self.table.size(0):
            self.table = self._sinusoids(2 * end).to(self.table)
        return x + self.table[start:end]

    def _sinusoids(self, length: int) -> Tensor:
        """(length, D). In float64 first: the angle of a late position has no digits to spare."""
        wavelength = 10000 ** (torch.arange(0, self.d_model, 2, dtype=torch.float64) / self.d_model)
        angle = torch.arange(length, dtype=torch.float64)[:, None] / wavelength
        return torch.stack([angle.sin(), angle.cos()], dim=-1).flatten(1).float()


class Learned(Position):
    """A learned vector for each position, added to the embeddings (Table 3 row (E); Gehring et al. 2017).

    Encoder and decoder hold a table each. Positions from `max_length` on do not exist.

    Raises:
        ValueError: in `embed`, a position past the table.
    """

    def __init__(self, causal: bool, *, d_model: int, max_length: int) -> None:
        super().__init__(causal)
        self.table = nn.Embedding(max_length, d_model)
        # As the word embeddings are: together with their sqrt(d_model) neither drowns the other.
        nn.init.normal_(self.table.weight, std=d_model**-0.5)

    def embed(self, x: Tensor, start: int) -> Tensor:
        """Embeddings (B, T, D) plus the learned vectors of the positions start, start + 1, ..."""
        end = start + x.size(1)
        if end > self.table.num_embeddings:
            raise ValueError(
                f"a sequence of {end} positions does not fit the learned table of {self.table.num_embeddings}: "
                "raise model.position.max_length"
            )
        return x + self.table.weight[start:end]


class NoPosition(Position):
    """No information on order: the encoder sees a bag of words, the decoder knows order only through its mask."""
