"""Recurrent encoder and decoder of GRU or LSTM layers, the architecture before the Transformer."""

import functools
from collections.abc import Callable
from typing import Any, Literal

import torch
from torch import Tensor, nn

from etude.model.alignment import Alignment, NoAlignment
from etude.model.dropout import Dropout
from etude.model.parts import Factory, Parts
from etude.model.state import SourceRows
from etude.model.watched import Watched

Hidden = tuple[Tensor, ...]  # (L, B, D) each: one tensor for a GRU, two for an LSTM
Layers = Callable[[Any, Tensor, Hidden | None], tuple[Tensor, Hidden]]


def in_single_precision_on_gpus(forward: Layers) -> Layers:
    """Keep layers out of autocast on a GPU: cuDNN's would compute in float16 even where bfloat16 is asked for.

    Small gradients would then be zero, as nothing scales the loss for bfloat16.
    """

    @functools.wraps(forward)
    def computed(self: Any, x: Tensor, hidden: Hidden | None = None) -> tuple[Tensor, Hidden]:
        if not (x.is_cuda and torch.is_autocast_enabled("cuda")):
            return forward(self, x, hidden)
        with torch.autocast("cuda", enabled=False):
            return forward(self, x.float(), hidden and tuple(state.float() for state in hidden))

    return computed


class Gru(nn.GRU):
    """Layers of gated recurrent units (Cho et al. 2014), by PyTorch's kernel."""

    states = 1

    @in_single_precision_on_gpus
    def forward(self, x: Tensor, hidden: Hidden | None = None) -> tuple[Tensor, Hidden]:  # type: ignore[override]
        """Map (B, T, D) and the hidden state before it (None: zeros) to (B, T, D) and the hidden state after it."""
        out, after = super().forward(x, hidden[0] if hidden else None)
        return out, (after,)


class Lstm(nn.LSTM):
    """Layers of long short-term memory (Hochreiter and Schmidhuber 1997), by PyTorch's kernel."""

    states = 2

    @in_single_precision_on_gpus
    def forward(self, x: Tensor, hidden: Hidden | None = None) -> tuple[Tensor, Hidden]:  # type: ignore[override]
        """Map (B, T, D) and the two hidden states before it (None: zeros) to (B, T, D) and those after it."""
        out, after = super().forward(x, hidden)  # type: ignore[arg-type]
        return out, after


CELLS = {"gru": Gru, "lstm": Lstm}


def recurrent_layers(cell: str, d_in: int, d_out: int, n_layers: int = 1, dropout: float = 0.0) -> Gru | Lstm:
    """Create `n_layers` layers of "gru" or "lstm", batch first, with dropout between them."""
    between = dropout if n_layers > 1 else 0.0
    layers: Gru | Lstm = CELLS[cell](d_in, d_out, n_layers, batch_first=True, dropout=between)
    return layers


class RecurrentEncoder(nn.Module):
    """Recurrent layers over the source, forwards or in both directions (Schuster and Paliwal 1997).

    With two directions, each has half of the units. Padding does not affect real positions: it is at the end, and
    backwards each sentence is read from its own last token. Of `parts` only the dropout is used; a recurrent network
    needs no position scheme.

    Args:
        parts: factories of the model; only `dropout` and `read` are used.
        n_layers: L.
        d_model: D.
        cell: "gru" or "lstm".
        bidirectional: whether to read backwards too.

    Raises:
        ValueError: `bidirectional`, and D is odd.
    """

    is_read = True

    def __init__(
        self, parts: Parts, *, n_layers: int, d_model: int, cell: Literal["gru", "lstm"], bidirectional: bool
    ) -> None:
        super().__init__()
        directions = 1 + bidirectional
        if d_model % directions:
            raise ValueError(
                f"half of it reads backwards: d_model must be even, not {d_model}: say model.d_model={d_model + 1}"
            )
        units = d_model // directions
        self.dropout = Dropout(parts.dropout)
        self.forwards = nn.ModuleList(recurrent_layers(cell, d_model, units) for _ in range(n_layers))
        self.backwards = nn.ModuleList(recurrent_layers(cell, d_model, units) for _ in range(n_layers * bidirectional))

    def forward(self, x: Tensor, mask: Tensor) -> Tensor:
        """Encode embeddings (B, S, D) with their mask (B, S), True at real tokens; returns (B, S, D)."""
        position = torch.arange(x.size(1), device=x.device)
        # (B, S): the last real token first. Applied twice, it restores the original order.
        reverse = ((mask.sum(dim=1, keepdim=True) - 1 - position) % x.size(1))[..., None]
        for n, forwards in enumerate(self.forwards):
            x = self.dropout(x)
            outputs = [forwards(x)[0]]
            for backwards in self.backwards[n : n + 1]:
                reversed_output = backwards(x.gather(1, reverse.expand_as(x)))[0]
                outputs.append(reversed_output.gather(1, reverse.expand_as(reversed_output)))
            x = torch.cat(outputs, dim=-1)
        return self.dropout(x)


class RecurrentDecoder(nn.Module):
    """Recurrent layers over the target so far, then attention to the source (Bahdanau et al. 2015, Luong et al. 2015).

    The initial state of each layer is `tanh(W mean(h))` of the encoder's output, with a W of its own (Sennrich et al.
    2017). With input feeding, the attentional state of a step is an input of the next one, beside the embedding (Luong
    et al. 2015, section 3.3). The decoder then knows what it has attended to, but training goes one position at a time.

    Args:
        parts: factories of the model; only `dropout` and `read` are used.
        reads: whether there is an encoder to attend to.
        n_layers: L.
        d_model: D.
        cell: "gru" or "lstm".
        alignment: makes the attention to the source.
        input_feeding: see above.

    Raises:
        ValueError: there is an alignment, but no encoder to attend to.
    """

    def __init__(
        self,
        parts: Parts,
        reads: bool,
        *,
        n_layers: int,
        d_model: int,
        cell: Literal["gru", "lstm"],
        alignment: Factory,
        input_feeding: bool,
    ) -> None:
        super().__init__()
        self.dropout, self.read = Dropout(parts.dropout), parts.read()
        self.alignment: Alignment | NoAlignment = alignment()
        if not reads and not isinstance(self.alignment, NoAlignment):
            raise ValueError("model/decoder/alignment has no encoder to attend to: say model/decoder/alignment=none")
        self.input_feeding = input_feeding
        self.layers = recurrent_layers(cell, d_model * (1 + input_feeding), d_model, n_layers, parts.dropout)
        self.first = nn.Linear(d_model, n_layers * d_model) if reads else _Zeros(n_layers * d_model)
        self.watched = Watched(is_cross=True, heads=1)

    def start(self, memory: Tensor, mask: Tensor) -> "RecurrentState":
        """Begin decoding from the encoder's output (B, S, D) and its mask (B, S)."""
        memory, real = self.read(memory), mask[..., None]
        mean = (memory * real).sum(dim=1) / real.sum(dim=1).clamp(min=1)
        first = torch.tanh(self.first(mean)).unflatten(-1, (self.layers.num_layers, -1)).transpose(0, 1).contiguous()
        hidden = (first, *[torch.zeros_like(first)] * (self.layers.states - 1))
        return RecurrentState(memory, mask, self.alignment.keys(memory), hidden, torch.zeros_like(mean)[:, None])

    def forward(self, x: Tensor, state: "RecurrentState") -> Tensor:
        """Decode embeddings (B, T, D) of the tokens that follow those in `state`, and add them to it; (B, T, D)."""
        steps = self.dropout(x).split(1, dim=1) if self.input_feeding else [self.dropout(x)]
        outputs, weights = zip(*(self._advance(step, state) for step in steps), strict=True)
        self.watched(torch.cat(weights, dim=1).detach()[:, None])
        return self.dropout(torch.cat(outputs, dim=1))

    def _advance(self, x: Tensor, state: "RecurrentState") -> tuple[Tensor, Tensor]:
        """Compute attentional states (B, T, D) of the next tokens, and their attention weights (B, T, S)."""
        if self.input_feeding:
            x = torch.cat([x, state.fed], dim=-1)
        out, state.hidden = self.layers(x, state.hidden)
        source = state.source
        attended, weights = self.alignment(source.fold(out), state.keys, source.memory, source.mask)
        attended = source.unfold(attended)
        state.fed = attended[:, -1:]
        return attended, source.unfold(weights)


class _Zeros(nn.Module):
    """The initial state of a decoder without an encoder."""

    def __init__(self, size: int) -> None:
        super().__init__()
        self.size = size

    def forward(self, x: Tensor) -> Tensor:
        """Return zeros (B, size) for `x` (B, D)."""
        return x.new_zeros(x.size(0), self.size)


class RecurrentState:
    """State of decoding R rows, each a source sentence with the target tokens decoded so far."""

    def __init__(self, memory: Tensor, mask: Tensor, keys: Tensor, hidden: Hidden, fed: Tensor) -> None:
        self.source, self.keys = SourceRows(memory, mask), keys
        self.hidden, self.fed = hidden, fed  # (L, R, D) each; (R, 1, D), the last attentional state

    def reorder(self, rows: Tensor) -> None:
        """Keep `rows` (R',) in that order, in place; a row may be repeated (beams) or left out (finished sentences)."""
        sentences = self.source.reorder(rows)
        if sentences is not None:
            self.keys = self.keys.index_select(0, sentences)
        self.hidden = tuple(one.index_select(1, rows) for one in self.hidden)
        self.fed = self.fed.index_select(0, rows)
