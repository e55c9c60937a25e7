"""What every position scheme answers, and the scheme that is none."""

from torch import Tensor, nn


class Position(nn.Module):
    """The do-nothing answers. `start` is the number of positions already decoded; `causal` is True in the decoder."""

    def __init__(self, causal: bool) -> None:
        super().__init__()
        self.causal = causal

    def add_to_embedding(self, x: Tensor, start: int) -> Tensor:
        """Embeddings (B, T, D) of the positions start, start + 1, ..."""
        return x

    def rotate(self, x: Tensor, start: int) -> Tensor:
        """Queries or keys (B, H, T, K) of the positions start, start + 1, ..."""
        return x

    def score_bias(self, queries: Tensor, length: int, start: int) -> Tensor | None:
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

    def score_flops(self, queries: int, keys: int, d_k: int) -> int:
        """Floating-point operations of the matrix products in `bias`: one layer, one head, each query on all keys."""
        return 0


NO_POSITION = Position(causal=False)


class NoPosition(Position):
    """No information on order: the encoder sees a bag of words, the decoder knows order only through its mask."""
