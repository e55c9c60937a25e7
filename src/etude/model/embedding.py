"""Token embeddings, the projection to logits, and weight tying between the three matrices (section 3.4)."""

from torch import Tensor, nn
from torch.nn import functional as F

from etude.model.chunks import Cost, sum_in_chunks
from etude.model.scale import soft_cap

TARGET_SPACES = 32  # rows of tensor2tensor's table of target languages and tasks


class Embedding(nn.Module):
    """Source, target and output matrices, each V x D and possibly the same. Inputs are multiplied by sqrt(D).

    Args:
        source, target, output: the three matrices.
        logit_cap: keeps logits between -cap and cap, `cap * tanh(logits / cap)` (Gemma Team 2024, section 2).
        base_width: the logits are divided by sqrt(D / base_width), which with a matrix that is also the input's has
            the width of muP (Yang et al. 2022).

    Raises:
        ValueError: the cap is not above zero.
    """

    def __init__(
        self,
        source: nn.Embedding,
        target: nn.Embedding,
        output: nn.Embedding,
        *,
        logit_cap: float | None = None,
        base_width: int | None = None,
    ) -> None:
        super().__init__()
        if logit_cap is not None and logit_cap <= 0:
            raise ValueError(f"logits are kept between -cap and cap: logit_cap must be above 0, not {logit_cap}")
        # PyTorch counts and saves the weights of a module that is registered under several names only once.
        self.source_table, self.target_table, self.output_table = source, target, output
        self.factor = source.embedding_dim**0.5
        self.before_output = Times((base_width / source.embedding_dim) ** 0.5) if base_width else nn.Identity()
        self.after_output = SoftCap(logit_cap) if logit_cap else nn.Identity()

    def leave_out_source(self) -> None:
        """Drop weights that only source tokens use, as distributed training waits for a gradient of every weight."""
        self.source_table = self.target_table

    def leave_out_target(self) -> None:
        """Drop weights that only target tokens use."""
        self.target_table = self.source_table

    def source(self, tokens: Tensor) -> Tensor:
        """Embed source tokens (B, S): (B, S, D)."""
        return self.source_table(tokens) * self.factor

    def target(self, tokens: Tensor) -> Tensor:
        """Embed target tokens (B, T): (B, T, D)."""
        return self.target_table(tokens) * self.factor

    def logits(self, x: Tensor) -> Tensor:
        """Project (B, T, D) to logits (B, T, V)."""
        logits: Tensor = self.after_output(F.linear(self.before_output(x), self.output_table.weight))
        return logits

    def read_out(self, x: Tensor, cost: Cost | None) -> Tensor:
        """Project (B, T, D) to logits (B, T, V), or return the sum of their `cost`, computed in chunks."""
        return self.logits(x) if cost is None else sum_in_chunks(self.logits, list(self.parameters()), x, cost)


class Times(nn.Module):
    """A tensor times a fixed factor."""

    def __init__(self, factor: float) -> None:
        super().__init__()
        self.factor = factor

    def forward(self, x: Tensor) -> Tensor:
        """Multiply."""
        return x * self.factor


class SoftCap(nn.Module):
    """Logits `cap * tanh(logits / cap)`, in float32 or float64."""

    def __init__(self, cap: float) -> None:
        super().__init__()
        self.cap = cap

    def forward(self, logits: Tensor) -> Tensor:
        """Bend each number."""
        return soft_cap(logits, self.cap)


class WordTable(nn.Embedding):
    """V x D, initialised from N(0, 1/D): unit variance after the factor sqrt(D), small logits as an output matrix."""

    def reset_parameters(self) -> None:
        """Initialise the vectors."""
        nn.init.normal_(self.weight, std=self.embedding_dim**-0.5)


class TargetSpaceTable(nn.Embedding):
    """32 x D, initialised Glorot uniform as in the published code: U(-b, b), b = sqrt(6 / (32 + D))."""

    def __init__(self, d_model: int) -> None:
        super().__init__(TARGET_SPACES, d_model)

    def reset_parameters(self) -> None:
        """Initialise the vectors."""
        nn.init.xavier_uniform_(self.weight)


class TiedAll(Embedding):
    """One matrix for source, target and output, as in section 3.4 (Press and Wolf 2017)."""

    def __init__(
        self, vocab_size: int, *, d_model: int, logit_cap: float | None = None, base_width: int | None = None
    ) -> None:
        table = WordTable(vocab_size, d_model)
        super().__init__(table, table, table, logit_cap=logit_cap, base_width=base_width)


class TiedDecoder(Embedding):
    """One matrix for target and output, another for the source."""

    def __init__(
        self, vocab_size: int, *, d_model: int, logit_cap: float | None = None, base_width: int | None = None
    ) -> None:
        table = WordTable(vocab_size, d_model)
        super().__init__(WordTable(vocab_size, d_model), table, table, logit_cap=logit_cap, base_width=base_width)


class Untied(Embedding):
    """Three matrices."""

    def __init__(
        self, vocab_size: int, *, d_model: int, logit_cap: float | None = None, base_width: int | None = None
    ) -> None:
        tables = (WordTable(vocab_size, d_model) for _ in range(3))
        super().__init__(*tables, logit_cap=logit_cap, base_width=base_width)


class UntiedNormed(Untied):
    """Three matrices, and layer normalisation of the embeddings of source and target (Le Scao et al. 2022)."""

    def __init__(
        self,
        vocab_size: int,
        *,
        d_model: int,
        eps: float,
        logit_cap: float | None = None,
        base_width: int | None = None,
    ) -> None:
        super().__init__(vocab_size, d_model=d_model, logit_cap=logit_cap, base_width=base_width)
        self.source_norm, self.target_norm = nn.LayerNorm(d_model, eps=eps), nn.LayerNorm(d_model, eps=eps)

    def leave_out_source(self) -> None:
        """Drop weights that only source tokens use."""
        super().leave_out_source()
        self.source_norm = self.target_norm

    def leave_out_target(self) -> None:
        """Drop weights that only target tokens use."""
        super().leave_out_target()
        self.target_norm = self.source_norm

    def source(self, tokens: Tensor) -> Tensor:
        """Embed source tokens (B, S): (B, S, D)."""
        x: Tensor = self.source_norm(super().source(tokens))
        return x

    def target(self, tokens: Tensor) -> Tensor:
        """Embed target tokens (B, T): (B, T, D)."""
        x: Tensor = self.target_norm(super().target(tokens))
        return x


class TiedAllT2T(TiedAll):
    """One matrix, with the zeroed tokens and the target-space vector of tensor2tensor in 2017.

    Padding and start token are embedded as zero vectors (the code shifted targets right behind a zero), and a learned
    vector for "the language to translate into" is added to every source position. Its table has 32 rows, of which a
    single pair of languages uses one.

    Args:
        vocab_size: V.
        d_model: D.
        silent: tokens embedded as zero vectors: padding and start.
    """

    def __init__(self, vocab_size: int, *, d_model: int, silent: list[int]) -> None:
        super().__init__(vocab_size, d_model=d_model)
        self.target_space = TargetSpaceTable(d_model)
        self.silent = silent

    def leave_out_source(self) -> None:
        """Freeze the target-space table."""
        self.target_space.requires_grad_(False)

    def source(self, tokens: Tensor) -> Tensor:
        """Embed source tokens (B, S): (B, S, D)."""
        return self._zero_silent(tokens, super().source(tokens)) + self.target_space.weight[0]

    def target(self, tokens: Tensor) -> Tensor:
        """Embed target tokens (B, T): (B, T, D)."""
        return self._zero_silent(tokens, super().target(tokens))

    def _zero_silent(self, tokens: Tensor, x: Tensor) -> Tensor:
        for token in self.silent:
            x = x.masked_fill((tokens == token)[..., None], 0.0)
        return x
