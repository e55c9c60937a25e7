"""Word embeddings and the projection to logits (section 3.4), and which of the three matrices are one."""

from torch import Tensor, nn
from torch.nn import functional as F

from etude.model.pieces import Cost, sum_in_pieces

TARGET_SPACES = 32  # rows of tensor2tensor's table of target languages and tasks


class Embedding(nn.Module):
    """Three V x D matrices, or fewer where they are tied. Inputs are multiplied by sqrt(D)."""

    def __init__(self, source: nn.Embedding, target: nn.Embedding, output: nn.Embedding) -> None:
        super().__init__()
        # Set as attributes one by one: where two are the same module, PyTorch counts and saves its weights once.
        self.source_table, self.target_table, self.output_table = source, target, output
        self.factor = source.embedding_dim**0.5

    def leave_out_source(self) -> None:
        """Keep no weights that only a source would read: processes that train together wait for all gradients."""
        self.source_table = self.target_table

    def leave_out_target(self) -> None:
        """Keep no weights that only a target would read."""
        self.target_table = self.source_table

    def source(self, tokens: Tensor) -> Tensor:
        """(B, S) to (B, S, D)."""
        return self.source_table(tokens) * self.factor

    def target(self, tokens: Tensor) -> Tensor:
        """(B, T) to (B, T, D)."""
        return self.target_table(tokens) * self.factor

    def logits(self, x: Tensor) -> Tensor:
        """(B, T, D) to (B, T, V)."""
        return F.linear(x, self.output_table.weight)

    def read_out(self, x: Tensor, cost: Cost | None) -> Tensor:
        """The logits (B, T, V) of (B, T, D), or the sum of what they cost, which does not need all of them at once."""
        return self.logits(x) if cost is None else sum_in_pieces(self.logits, list(self.parameters()), x, cost)


class WordTable(nn.Embedding):
    """V x D, drawn from N(0, 1/D): unit variance after the factor sqrt(D), and small logits where it is the output."""

    def reset_parameters(self) -> None:
        """Draw the vectors anew."""
        nn.init.normal_(self.weight, std=self.embedding_dim**-0.5)


class TargetSpaceTable(nn.Embedding):
    """32 x D, Glorot uniform over these sizes, as the published code drew it: U(-b, b), b = sqrt(6 / (32 + D))."""

    def __init__(self, d_model: int) -> None:
        super().__init__(TARGET_SPACES, d_model)

    def reset_parameters(self) -> None:
        """Draw the vectors anew."""
        nn.init.xavier_uniform_(self.weight)


class TiedAll(Embedding):
    """One matrix for source, target and output, as in section 3.4 (Press and Wolf 2017)."""

    def __init__(self, vocab_size: int, *, d_model: int) -> None:
        table = WordTable(vocab_size, d_model)
        super().__init__(table, table, table)


class TiedDecoder(Embedding):
    """One matrix for target and output, another for the source."""

    def __init__(self, vocab_size: int, *, d_model: int) -> None:
        table = WordTable(vocab_size, d_model)
        super().__init__(WordTable(vocab_size, d_model), table, table)


class Untied(Embedding):
    """Three matrices."""

    def __init__(self, vocab_size: int, *, d_model: int) -> None:
        super().__init__(*(WordTable(vocab_size, d_model) for _ in range(3)))


class TiedAllT2T(TiedAll):
    """One matrix, as tensor2tensor had it in 2017: two of its rows are never read, and the source knows its target.

    Padding and the start of the target enter as zero vectors (the targets were shifted right behind a zero), and a
    learned vector for "the language to translate into" is added to every source position. Its table has 32 rows, of
    which a single pair of languages uses one.

    Args:
        vocab_size: V.
        silent: the tokens that enter as zero vectors: padding and start.
    """

    def __init__(self, vocab_size: int, *, d_model: int, silent: list[int]) -> None:
        super().__init__(vocab_size, d_model=d_model)
        self.target_space = TargetSpaceTable(d_model)
        self.silent = silent

    def leave_out_source(self) -> None:
        """The target-space table stays as it is: nothing learns what it holds."""
        self.target_space.requires_grad_(False)

    def source(self, tokens: Tensor) -> Tensor:
        """(B, S) to (B, S, D)."""
        return self._silence(tokens, super().source(tokens)) + self.target_space.weight[0]

    def target(self, tokens: Tensor) -> Tensor:
        """(B, T) to (B, T, D)."""
        return self._silence(tokens, super().target(tokens))

    def _silence(self, tokens: Tensor, x: Tensor) -> Tensor:
        for token in self.silent:
            x = x.masked_fill((tokens == token)[..., None], 0.0)
        return x
