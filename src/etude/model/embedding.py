"""Token embeddings, the projection to logits, and weight tying between the three matrices (section 3.4)."""

from collections.abc import Sequence
from itertools import pairwise
from typing import Protocol

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from etude.model.chunks import Cost, sum_in_chunks
from etude.model.scale import soft_cap

TARGET_SPACES = 32  # rows of tensor2tensor's table of target languages and tasks


class Table(Protocol):
    """The interface of a table of tokens, a module: V x D, or what stands for it."""

    embedding_dim: int  # D

    def __call__(self, tokens: Tensor) -> Tensor:
        """Look up tokens (...): (..., D)."""

    def logits(self, x: Tensor) -> Tensor:
        """Multiply (..., D) by the vector of every token: (..., V)."""


class Embedding(nn.Module):
    """Source, target and output tables, each V x D and possibly the same. Inputs are multiplied by sqrt(D).

    Args:
        source, target, output: the three tables.
        logit_cap: keeps logits between -cap and cap, `cap * tanh(logits / cap)` (Gemma Team 2024, section 2).
        base_width: the logits are divided by sqrt(D / base_width), which with a matrix that is also the input's has
            the width of muP (Yang et al. 2022).

    Raises:
        ValueError: the cap is not above zero.
    """

    def __init__(
        self,
        source: Table,
        target: Table,
        output: Table,
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
        logits: Tensor = self.after_output(self.output_table.logits(self.before_output(x)))
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

    def logits(self, x: Tensor) -> Tensor:
        """Multiply (..., D) by the vector of every token: (..., V)."""
        return F.linear(x, self.weight)


class FactorizedTable(nn.Module):
    """V x E times E x D, for vectors of few numbers of their own (Lan et al. 2020, section 3.1)."""

    def __init__(self, vocab_size: int, d_model: int, size: int) -> None:
        super().__init__()
        self.embedding_dim = d_model
        self.table, self.proj = WordTable(vocab_size, size), nn.Linear(size, d_model, bias=False)

    def forward(self, tokens: Tensor) -> Tensor:
        """Look up tokens (...): (..., D)."""
        out: Tensor = self.proj(self.table(tokens))
        return out

    def logits(self, x: Tensor) -> Tensor:
        """Multiply (..., D) by the vector of every token: (..., V)."""
        return self.table.logits(x @ self.proj.weight)


class ClusteredTable(nn.Module):
    """Tokens in clusters, from frequent to rare, the vectors of each of another size (Baevski and Auli 2019).

    Args:
        vocab_size: V.
        d_model: D, the size of the first cluster, and of the reserved tokens.
        shares: where each further cluster begins, as a share of V; a tokenizer has frequent tokens first.
        sizes: of the vectors of each further cluster, which a matrix makes D-vectors if that is another number.
        reserved: how many tokens at the end of the vocabulary are a cluster of their own; 0: none.

    Raises:
        ValueError: there are not as many sizes as shares, a size is not above zero, or a cluster has no tokens.
    """

    def __init__(
        self, vocab_size: int, d_model: int, shares: Sequence[float], sizes: Sequence[int], reserved: int = 0
    ) -> None:
        super().__init__()
        if len(shares) != len(sizes) or any(size < 1 for size in sizes):
            raise ValueError(
                f"model.tying.shares={[*shares]} must have a size above 0 for each: say as many in model.tying.sizes, "
                f"not {[*sizes]}"
            )
        last = vocab_size - reserved
        bounds = [0, *(round(share * vocab_size) for share in shares), last, *[vocab_size] * bool(reserved)]
        if any(start >= end for start, end in pairwise(bounds)):
            raise ValueError(
                f"model.tying.shares={[*shares]} cuts {vocab_size} tokens at {bounds[1:-1]}, which leaves a cluster "
                "without tokens: choose others that rise from 0 to 1"
            )
        self.embedding_dim, self.starts = d_model, bounds[:-1]
        self.counts = [end - start for start, end in pairwise(bounds)]
        of_each = [d_model, *sizes, *[d_model] * bool(reserved)]
        self.clusters = nn.ModuleList(
            WordTable(count, d_model) if size == d_model else FactorizedTable(count, d_model, size)
            for count, size in zip(self.counts, of_each, strict=True)
        )

    def forward(self, tokens: Tensor) -> Tensor:
        """Look up tokens (...): (..., D)."""
        out = self.clusters[0](tokens.clamp(max=self.counts[0] - 1))
        for start, count, table in [*zip(self.starts, self.counts, self.clusters, strict=True)][1:]:
            own = table((tokens - start).clamp(0, count - 1))
            out = torch.where((tokens >= start)[..., None], own, out)
        return out

    def cluster_logits(self, x: Tensor) -> list[Tensor]:
        """Multiply (..., D) by the vectors of each cluster of C tokens: (..., C)."""
        return [table.logits(x) for table in self.clusters]  # type: ignore[operator]

    def logits(self, x: Tensor) -> Tensor:
        """Multiply (..., D) by the vector of every token: (..., V)."""
        return torch.cat(self.cluster_logits(x), dim=-1)


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


class TiedUnscaled(TiedAll):
    """One matrix, whose vectors are the inputs as they are, without the factor sqrt(D) (Radford et al. 2019)."""

    def __init__(self, vocab_size: int, *, d_model: int) -> None:
        super().__init__(vocab_size, d_model=d_model)
        self.factor = 1.0


class TiedDecoder(Embedding):
    """One matrix for target and output, another for the source."""

    def __init__(
        self, vocab_size: int, *, d_model: int, logit_cap: float | None = None, base_width: int | None = None
    ) -> None:
        table = WordTable(vocab_size, d_model)
        super().__init__(WordTable(vocab_size, d_model), table, table, logit_cap=logit_cap, base_width=base_width)


class TiedInputs(Embedding):
    """One matrix for source and target, another for the output."""

    def __init__(
        self, vocab_size: int, *, d_model: int, logit_cap: float | None = None, base_width: int | None = None
    ) -> None:
        table = WordTable(vocab_size, d_model)
        super().__init__(table, table, WordTable(vocab_size, d_model), logit_cap=logit_cap, base_width=base_width)


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


class Factorized(Embedding):
    """One factorized table for source and target, a whole matrix for the output."""

    def __init__(self, vocab_size: int, *, d_model: int, size: int) -> None:
        table = FactorizedTable(vocab_size, d_model, size)
        super().__init__(table, table, WordTable(vocab_size, d_model))


class FactorizedShared(Embedding):
    """One factorized table for source, target and output (Lan et al. 2020)."""

    def __init__(self, vocab_size: int, *, d_model: int, size: int) -> None:
        table = FactorizedTable(vocab_size, d_model, size)
        super().__init__(table, table, table)


class AdaptiveInput(Embedding):
    """One table in clusters for source, target and output, and a softmax over all tokens; see `ClusteredTable`."""

    def __init__(
        self, vocab_size: int, *, d_model: int, shares: list[float], sizes: list[int], reserved: int = 0
    ) -> None:
        table = ClusteredTable(vocab_size, d_model, shares, sizes, reserved)
        super().__init__(table, table, table)


class AdaptiveSoftmax(AdaptiveInput):
    """A softmax over the first cluster and the other clusters, and one within each of these (Grave et al. 2017).

    The logits are logarithms of probabilities: `log p(cluster) + log p(token | cluster)`. All are computed, as decoding
    and label smoothing need them all.
    """

    output_table: ClusteredTable

    def __init__(self, vocab_size: int, *, d_model: int, shares: list[float], sizes: list[int], reserved: int) -> None:
        super().__init__(vocab_size, d_model=d_model, shares=shares, sizes=sizes, reserved=reserved)
        self.cluster_table = WordTable(len(self.output_table.clusters) - 1, d_model)

    def logits(self, x: Tensor) -> Tensor:
        """Project (B, T, D) to logits (B, T, V)."""
        head, *tails = self.output_table.cluster_logits(x)
        first = torch.cat([head, self.cluster_table.logits(x)], dim=-1).log_softmax(dim=-1)
        found, *clusters = first.split([head.size(-1), *[1] * len(tails)], dim=-1)
        within = (cluster + tail.log_softmax(dim=-1) for cluster, tail in zip(clusters, tails, strict=True))
        return torch.cat([found, *within], dim=-1)


class MixtureOfSoftmaxes(TiedAll):
    """`log sum_k pi_k softmax(tanh(W_k x) E^T)`, K softmaxes over one matrix E (Yang et al. 2018).

    The weights `pi` are a softmax of a matrix times x.
    """

    def __init__(self, vocab_size: int, *, d_model: int, softmaxes: int) -> None:
        super().__init__(vocab_size, d_model=d_model)
        self.contexts = nn.ModuleList(nn.Linear(d_model, d_model, bias=False) for _ in range(softmaxes))
        self.prior = nn.Linear(d_model, softmaxes, bias=False)

    def logits(self, x: Tensor) -> Tensor:
        """Project (B, T, D) to logits (B, T, V)."""
        contexts = torch.stack([context(x) for context in self.contexts], dim=-2).tanh()
        of_each: Tensor = self.output_table.logits(contexts).log_softmax(dim=-1)  # (B, T, K, V)
        return (self.prior(x).log_softmax(dim=-1)[..., None] + of_each).logsumexp(dim=-2)

    def read_out(self, x: Tensor, cost: Cost | None) -> Tensor:
        """Project (B, T, D) to logits (B, T, V), or return the sum of their `cost`, in chunks K times as small."""
        weights, copies = list(self.parameters()), len(self.contexts)
        return self.logits(x) if cost is None else sum_in_chunks(self.logits, weights, x, cost, copies=copies)
