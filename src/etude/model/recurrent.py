"""Recurrent encoder and decoder, of GRU or LSTM layers: what the Transformer replaced."""

from typing import Literal

import torch
from torch import Tensor, nn

from etude.model.alignment import Alignment, NoAlignment
from etude.model.dropout import Dropout
from etude.model.parts import Factory, Parts
from etude.model.state import SourceRows
from etude.model.watched import Watched

Hidden = tuple[Tensor, ...]  # (L, B, D) each: a GRU has one, an LSTM two


class Gru(nn.GRU):
    """Layers of gated recurrent units (Cho et al. 2014), by PyTorch's kernel."""

    states = 1

    def forward(self, x: Tensor, hidden: Hidden | None = None) -> tuple[Tensor, Hidden]:  # type: ignore[override]
        """(B, T, D) and the state before it, or zeros, to (B, T, D) and the state after it."""
        out, after = super().forward(x, hidden[0] if hidden else None)
        return out, (after,)


class Lstm(nn.LSTM):
    """Layers of long short-term memory (Hochreiter and Schmidhuber 1997), by PyTorch's kernel."""

    states = 2


CELLS = {"gru": Gru, "lstm": Lstm}


def recurrent_layers(cell: str, d_in: int, d_out: int, n_layers: int = 1, dropout: float = 0.0) -> Gru | Lstm:
    """`n_layers` of them, batch first."""
    between = dropout if n_layers > 1 else 0.0
    made: Gru | Lstm = CELLS[cell](d_in, d_out, n_layers, batch_first=True, dropout=between)
    return made


class RecurrentEncoder(nn.Module):
    """Layers that read the source forwards and, each with half of the units, backwards (Schuster and Paliwal 1997).

    Padding stands at the end, where forwards nothing real follows; backwards each sentence is read from its own end, so
    that no padding comes before it. Of the parts only the dropout is used: order needs no position scheme.

    Args:
        parts: of the model.
        n_layers: L.
        d_model: D.
        cell: "gru" or "lstm".
        bidirectional: whether to read backwards too.

    Raises:
        ValueError: D is odd and has no half.
    """

    is_read = True

    def __init__(
        self, parts: Parts, *, n_layers: int, d_model: int, cell: Literal["gru", "lstm"], bidirectional: bool
    ) -> None:
        super().__init__()
        directions = 1 + bidirectional
        if d_model % directions:
            raise ValueError(f"d_model={d_model} is odd: half of it reads forwards, half backwards")
        units = d_model // directions
        self.dropout = Dropout(parts.dropout)
        self.forwards = nn.ModuleList(recurrent_layers(cell, d_model, units) for _ in range(n_layers))
        self.backwards = nn.ModuleList(recurrent_layers(cell, d_model, units) for _ in range(n_layers * bidirectional))

    def forward(self, x: Tensor, mask: Tensor) -> Tensor:
        """Embeddings (B, S, D) and their mask (B, S), True at real tokens, to (B, S, D)."""
        place = torch.arange(x.size(1), device=x.device)
        end_first = (mask.sum(dim=1, keepdim=True) - 1 - place) % x.size(1)  # (B, S); read twice it is the old order
        turn = end_first[..., None]
        for n, forwards in enumerate(self.forwards):
            x = self.dropout(x)
            read = [forwards(x)[0]]
            for backwards in self.backwards[n : n + 1]:
                turned = backwards(x.gather(1, turn.expand_as(x)))[0]
                read.append(turned.gather(1, turn.expand_as(turned)))
            x = torch.cat(read, dim=-1)
        return self.dropout(x)


class RecurrentDecoder(nn.Module):
    """Layers that read the target so far, then look at the source (Bahdanau et al. 2015, Luong et al. 2015).

    The first state is `tanh(W mean(h))` of the encoder's output, for each layer its own (Sennrich et al. 2017). With
    input feeding the attentional state of a step goes into the next one beside the embedding (Luong et al. 2015,
    section 3.3): what was looked at is known, and training goes one position at a time.

    Args:
        parts: of the model; the dropout is used.
        reads: whether there is an encoder.
        n_layers: L.
        d_model: D.
        cell: "gru" or "lstm".
        alignment: makes what looks at the source.
        input_feeding: see above.

    Raises:
        ValueError: there is an alignment and no encoder to look at.
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
        self.dropout = Dropout(parts.dropout)
        self.alignment: Alignment | NoAlignment = alignment()
        if not reads and not isinstance(self.alignment, NoAlignment):
            raise ValueError("model/decoder/alignment has no encoder to look at: say model/decoder/alignment=none")
        self.input_feeding = input_feeding
        self.layers = recurrent_layers(cell, d_model * (1 + input_feeding), d_model, n_layers, parts.dropout)
        self.first = nn.Linear(d_model, n_layers * d_model) if reads else _Zeros(n_layers * d_model)
        self.watched = Watched(is_cross=True, heads=1)

    def start(self, memory: Tensor, mask: Tensor) -> "RecurrentState":
        """Nothing is decoded yet of the sentences with this encoder's output (B, S, D) and mask (B, S)."""
        real = mask[..., None]
        mean = (memory * real).sum(dim=1) / real.sum(dim=1).clamp(min=1)
        first = torch.tanh(self.first(mean)).unflatten(-1, (self.layers.num_layers, -1)).transpose(0, 1).contiguous()
        hidden = (first, *[torch.zeros_like(first)] * (self.layers.states - 1))
        return RecurrentState(memory, mask, self.alignment.keys(memory), hidden, torch.zeros_like(mean)[:, None])

    def forward(self, x: Tensor, state: "RecurrentState") -> Tensor:
        """Embeddings (B, T, D) of the tokens after those that `state` remembers, to (B, T, D)."""
        steps = self.dropout(x).split(1, dim=1) if self.input_feeding else [self.dropout(x)]
        read, weights = zip(*(self._advance(step, state) for step in steps), strict=True)
        self.watched(torch.cat(weights, dim=1).detach()[:, None])
        return self.dropout(torch.cat(read, dim=1))

    def _advance(self, x: Tensor, state: "RecurrentState") -> tuple[Tensor, Tensor]:
        """Attentional states (B, T, D) of the next tokens, and the weights (B, T, S) of where they look."""
        if self.input_feeding:
            x = torch.cat([x, state.fed], dim=-1)
        out, state.hidden = self.layers(x, state.hidden)
        source = state.source
        read, weights = self.alignment(source.fold(out), state.keys, source.memory, source.mask)
        read = source.unfold(read)
        state.fed = read[:, -1:]
        return read, source.unfold(weights)


class _Zeros(nn.Module):
    """What is known of a source that is not there."""

    def __init__(self, size: int) -> None:
        super().__init__()
        self.size = size

    def forward(self, x: Tensor) -> Tensor:
        """(B, D) to zeros (B, size)."""
        return x.new_zeros(x.size(0), self.size)


class RecurrentState:
    """Where the decoding of a batch stands: R rows, each a source with what the layers remember of its target."""

    def __init__(self, memory: Tensor, mask: Tensor, keys: Tensor, hidden: Hidden, fed: Tensor) -> None:
        self.source, self.keys = SourceRows(memory, mask), keys
        self.hidden, self.fed = hidden, fed  # (L, R, D) each, (R, 1, D)

    def reorder(self, rows: Tensor) -> None:
        """Keep `rows` (R',) in that order, in place; a row may be repeated (beams) or left out (finished sentences)."""
        left = self.source.reorder(rows)
        if left is not None:
            self.keys = self.keys.index_select(0, left)
        self.hidden = tuple(one.index_select(1, rows) for one in self.hidden)
        self.fed = self.fed.index_select(0, rows)
