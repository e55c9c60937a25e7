"""Encoder and decoder of "Attention Is All You Need" (arXiv:1706.03762, section 3.1), made of exchangeable parts."""

from collections.abc import Callable, Iterable, Sequence
from typing import Protocol, cast

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from etude.model.block import (
    CausalLayer,
    DecoderLayer,
    EncoderLayer,
    ParallelCausalLayer,
    ParallelDecoderLayer,
    ParallelEncoderLayer,
)
from etude.model.dropout import Dropout
from etude.model.mask import causal_mask
from etude.model.numbered import number_layers
from etude.model.parts import Parts
from etude.model.position import Position
from etude.model.state import SourceRows


class TransformerEncoder(nn.Module):
    """A stack of layers of self-attention and feed-forward.

    Args:
        parts: factories of what its layers are made of.
        n_layers: N.
    """

    is_read = True
    layer: Callable[[Parts], nn.Module] = EncoderLayer

    def __init__(self, parts: Parts, *, n_layers: int) -> None:
        super().__init__()
        self.steps = self.order(n_layers)
        distinct = max(self.steps) + 1
        self.dropout, self.initial = Dropout(parts.dropout), parts.begin()
        self.position: Position = parts.position(False).for_layers(distinct)
        self.layers = nn.ModuleList(self.layer(parts) for _ in range(distinct))
        number_layers(self.layers, "encoder")
        self.final_norm: nn.Module = parts.residual().final_norm()

    def order(self, n_layers: int) -> Sequence[int]:
        """Return which of its layers each step of the stack uses."""
        return range(n_layers)

    def begin_step(self, x: Tensor, step: int) -> Tensor:
        """Return what the layer of a step 0, 1, ... is given in place of `x` (B, S, D)."""
        return x

    def forward(self, x: Tensor, mask: Tensor) -> Tensor:
        """Encode embeddings (B, S, D) with their mask (B, S), True at real tokens; returns (B, S, D)."""
        x = self.initial(self.dropout(self.position.add_to_embedding(x, 0)))
        for step, n in enumerate(self.steps):
            x = self.layers[n](self.begin_step(x, step), mask[:, None, None, :], self.position.at_layer(n))
        out: Tensor = self.final_norm(x)
        return out


class TransformerDecoder(nn.Module):
    """A stack of layers of masked self-attention, attention to the encoder if there is one, and feed-forward.

    Args:
        parts: factories of what its layers are made of.
        reads: whether there is an encoder to attend to.
        n_layers: N.
    """

    reading_layer: Callable[[Parts], nn.Module] = DecoderLayer
    causal_layer: Callable[[Parts], nn.Module] = CausalLayer

    def __init__(self, parts: Parts, reads: bool, *, n_layers: int) -> None:
        super().__init__()
        layer = self.reading_layer if reads else self.causal_layer
        self.steps = self.order(n_layers)
        distinct = max(self.steps) + 1
        self.dropout, self.initial = Dropout(parts.dropout), parts.begin()
        self.position: Position = parts.position(True).for_layers(distinct)
        self.layers = nn.ModuleList(layer(parts) for _ in range(distinct))
        number_layers(self.layers, "decoder")
        self.final_norm: nn.Module = parts.residual().final_norm()

    def order(self, n_layers: int) -> Sequence[int]:
        """Return which of its layers each step of the stack uses."""
        return range(n_layers)

    def begin_step(self, x: Tensor, step: int) -> Tensor:
        """Return what the layer of a step 0, 1, ... is given in place of `x` (B, T, D)."""
        return x

    def start(self, memory: Tensor, mask: Tensor) -> "TransformerState":
        """Begin decoding from the encoder's output (B, S, D) and its mask (B, S)."""
        return TransformerState(memory, mask, [cast(DecoderLayer, self.layers[n]).start() for n in self.steps])

    def forward(self, x: Tensor, state: "TransformerState") -> Tensor:
        """Decode embeddings (B, T, D) of the tokens that follow those in `state`, and add them to it; (B, T, D)."""
        start, length = state.length, x.size(1)
        x = self.initial(self.dropout(self.position.add_to_embedding(x, start)))
        mask = causal_mask(length, start, x.device)
        for step, (n, cache) in enumerate(zip(self.steps, state.caches, strict=True)):
            given = self.begin_step(x, step)
            x = self.layers[n](given, mask, self.position.at_layer(n), state.source, cache)
        state.length += length
        out: Tensor = self.final_norm(x)
        return out


class ParallelEncoder(TransformerEncoder):
    """A stack whose layers compute self-attention and feed-forward from the same input, side by side."""

    layer = ParallelEncoderLayer


class ParallelDecoder(TransformerDecoder):
    """A stack whose layers compute attention and feed-forward from the same input, side by side."""

    reading_layer, causal_layer = ParallelDecoderLayer, ParallelCausalLayer


class SharedEncoder(TransformerEncoder):
    """A stack whose layers have the same weights: one layer, used N times (Lan et al. 2020)."""

    def order(self, n_layers: int) -> Sequence[int]:
        """Return the same layer for each step."""
        return [0] * n_layers


class SharedDecoder(TransformerDecoder):
    """A stack whose layers have the same weights: one layer, used N times (Lan et al. 2020)."""

    def order(self, n_layers: int) -> Sequence[int]:
        """Return the same layer for each step."""
        return [0] * n_layers


class UniversalEncoder(SharedEncoder):
    """One layer used N times, each time with a learned vector of the step added to its input (Dehghani et al. 2019).

    There is no halting: all positions take all steps.

    Args:
        parts: factories of what the layer is made of.
        n_layers: N.
        d_model: D.
        around: how many times the layer is used without such a vector before the N steps, and again after them.
    """

    def __init__(self, parts: Parts, *, n_layers: int, d_model: int, around: int) -> None:
        super().__init__(parts, n_layers=n_layers + 2 * around)
        self.signal = _StepSignal(n_layers, d_model, around)

    def begin_step(self, x: Tensor, step: int) -> Tensor:
        """Add the vector of the step to `x` (B, S, D)."""
        return cast(Tensor, self.signal(x, step))


class UniversalDecoder(SharedDecoder):
    """One layer used N times, each time with a learned vector of the step; arguments as in `UniversalEncoder`."""

    def __init__(self, parts: Parts, reads: bool, *, n_layers: int, d_model: int, around: int) -> None:
        super().__init__(parts, reads, n_layers=n_layers + 2 * around)
        self.signal = _StepSignal(n_layers, d_model, around)

    def begin_step(self, x: Tensor, step: int) -> Tensor:
        """Add the vector of the step to `x` (B, T, D)."""
        return cast(Tensor, self.signal(x, step))


class _StepSignal(nn.Module):
    """A learned vector for each step, but for the first and the last few."""

    def __init__(self, steps: int, d_model: int, around: int) -> None:
        super().__init__()
        self.table, self.around = nn.Parameter(torch.empty(steps, d_model)), around
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw numbers of variance one, as those of scaled embeddings are."""
        nn.init.normal_(self.table)

    def forward(self, x: Tensor, step: int) -> Tensor:
        """Add the vector of the step to `x` (..., D)."""
        n = step - self.around
        return x + self.table[n] if 0 <= n < len(self.table) else x


class TransparentEncoder(TransformerEncoder):
    """A stack of which each layer of the decoder reads a mixture of its own (Bapna et al. 2018).

    A mixture is `sum_i s_i h_i` over the embeddings and the outputs of the N layers, each with the norm that follows
    the last one; the weights `s` are a softmax of learned numbers, equal at first. What has no layers that attend to
    the encoder, such as a recurrent decoder, reads one mixture.
    """

    def __init__(self, parts: Parts, *, n_layers: int) -> None:
        super().__init__(parts, n_layers=n_layers)
        self.scores = nn.ParameterList()  # of each reader, N + 1

    def reader(self) -> nn.Module:
        """Make that with which one layer of the decoder reads the output, and the weights of its mixture."""
        self.scores.append(nn.Parameter(torch.zeros(len(self.steps) + 1)))
        return _ReadMixture(len(self.scores) - 1)

    def forward(self, x: Tensor, mask: Tensor) -> Tensor:
        """Encode embeddings (B, S, D) with their mask (B, S), True at real tokens; M readers get (B, S, M, D)."""
        states = [self.initial(self.dropout(self.position.add_to_embedding(x, 0)))]
        for n in self.steps:
            states.append(self.layers[n](states[-1], mask[:, None, None, :], self.position.at_layer(n)))
        weights = torch.stack([*self.scores]).softmax(dim=-1)
        return weights @ torch.stack([self.final_norm(state) for state in states], dim=2)


class _ReadMixture(nn.Module):
    """Reads the n-th of the mixtures."""

    def __init__(self, n: int) -> None:
        super().__init__()
        self.n = n

    def forward(self, memory: Tensor) -> Tensor:
        """Map (B, S, M, D) to (B, S, D)."""
        return memory[:, :, self.n]


class FunnelEncoder(TransformerEncoder):
    """A stack in groups of layers, each group but the first of which halves the length (Dai et al. 2020).

    Within the first layer of a group, after its self-attention, two neighbours become their mean; of a token and
    padding that is the token. All positions attend there, as in Narang et al. (2021), and not the means alone, as in
    the first paper. A decoder reads the short output.

    Args:
        parts: factories of what its layers are made of.
        n_layers: N.
        groups: of about as many layers each.

    Raises:
        ValueError: there are more groups than layers.
    """

    def __init__(self, parts: Parts, *, n_layers: int, groups: int) -> None:
        if groups > n_layers:
            raise ValueError(
                f"model.encoder.groups={groups}: {n_layers} layers cannot be so many groups: "
                f"say model.encoder.groups={n_layers}"
            )
        super().__init__(parts, n_layers=n_layers)
        group = [n * groups // n_layers for n in range(n_layers)]
        self.halving = [n for n in range(1, n_layers) if group[n] != group[n - 1]]  # layers

    def memory_mask(self, mask: Tensor) -> Tensor:
        """Return which positions of the output are real, (B, S'), given which tokens are, (B, S)."""
        for _ in self.halving:
            mask = _pairs(mask).any(dim=2)
        return mask

    def forward(self, x: Tensor, mask: Tensor) -> Tensor:
        """Encode embeddings (B, S, D) with their mask (B, S), True at real tokens; returns (B, S', D)."""
        x = self.initial(self.dropout(self.position.add_to_embedding(x, 0)))
        for n, layer in enumerate(cast(Iterable[EncoderLayer], self.layers)):
            x = layer.attend(x, mask[:, None, None, :], self.position.at_layer(n))
            if n in self.halving:
                real = _pairs(mask)
                x, mask = _mean_of_pairs(x, real), real.any(dim=2)
            x = layer.feed(x)
        out: Tensor = self.final_norm(x)
        return out


def _pairs(x: Tensor) -> Tensor:
    """Arrange (B, S, ...) in pairs of neighbours, (B, ceil(S / 2), 2, ...); the last has zeros where S is odd."""
    behind = [0, 0] * (x.dim() - 2) + [0, x.size(1) % 2]
    return F.pad(x, behind).unflatten(1, (-1, 2))


def _mean_of_pairs(x: Tensor, real: Tensor) -> Tensor:
    """Map (B, S, ...) to (B, ceil(S / 2), ...): the mean of those of a pair that are `real`, (B, ceil(S / 2), 2)."""
    shares = (real / real.sum(dim=2, keepdim=True).clamp(min=1)).to(x.dtype)
    return (shares.reshape(*shares.shape, *[1] * (x.dim() - 2)) * _pairs(x)).sum(dim=2)


class LayerCaches(Protocol):
    """The interface of what a decoder layer keeps."""

    def reorder(self, rows: Tensor, sentences: Tensor | None) -> None:
        """Keep `rows` (R',), and of the source `sentences` (A',), each in that order; None: all sentences."""


class TransformerState:
    """State of decoding R rows, each a source sentence with the target tokens decoded so far."""

    def __init__(self, memory: Tensor, mask: Tensor, caches: Sequence[LayerCaches]) -> None:
        self.source, self.caches = SourceRows(memory, mask), caches
        self.length = 0  # target tokens decoded so far

    def reorder(self, rows: Tensor) -> None:
        """Keep `rows` (R',) in that order, in place; a row may be repeated (beams) or left out (finished sentences)."""
        sentences = self.source.reorder(rows)
        for cache in self.caches:
            cache.reorder(rows, sentences)
