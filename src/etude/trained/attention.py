"""Where a trained model looks in one text: its attention weights, as arrays and drawn."""

from collections.abc import Sequence
from dataclasses import dataclass
from numbers import Integral
from typing import TYPE_CHECKING

import numpy as np
import torch

from etude.data.tokenizer import BOS, EOS, Tokenizer
from etude.errors import UserError, did_you_mean
from etude.model.encoder_decoder import EncoderDecoder
from etude.trained.heads import attention_weights

if TYPE_CHECKING:
    from plotly.graph_objects import Figure


@dataclass(frozen=True, repr=False)
class Attention:
    """The attention weights of a model that reads one text.

    Attributes:
        source: the S tokens that the encoder reads, as text, `▁` for the space before a word; the last is the end.
        target: the T tokens that the decoder reads; the first begins the text. Row i of its weights is where it looks
            to predict the token after token i.
        weights: for "encoder", "decoder" and "cross", as far as the model has it, an array by layer of (H, queries,
            keys): (H, S, S), (H, T, T) and (H, T, S). Every row sums to one, to the precision of the run, less what a
            sink takes.
    """

    source: list[str]
    target: list[str]
    weights: dict[str, list[np.ndarray]]

    def __repr__(self) -> str:
        kinds = ", ".join(f"{kind}: {len(layers)} layers of {layers[0].shape}" for kind, layers in self.weights.items())
        return f"<Attention, {kinds or 'no weights that can be read'}>"

    def plot(self, kind: str = "", *, layer: int | None = None, head: int | None = None) -> "Figure":
        """Draw the weights of a layer as a heat map; what a row reads stands at its left, what it looks at below.

        Args:
            kind: "encoder", "decoder" or "cross"; by default the last that the model has.
            layer: from 1; None: the last.
            head: from 1; None: the mean over all heads of the layer.

        Raises:
            UserError: the model has no such attention, layer or head.
        """
        from plotly.graph_objects import Figure

        if not self.weights:
            raise UserError("this model has no attention whose weights can be read")
        kind = kind or [*self.weights][-1]
        if kind not in self.weights:
            raise UserError(f"this model has no attention {kind!r}; {did_you_mean(kind, self.weights)}")
        layers = self.weights[kind]
        layer = len(layers) if layer is None else layer
        heads = layers[_number("layer", layer, len(layers)) - 1]
        shown = heads.mean(axis=0) if head is None else heads[_number("head", head, len(heads)) - 1]
        rows = self.source if kind == "encoder" else self.target
        columns = self.target if kind == "decoder" else self.source
        which = f"{kind}, layer {layer}, {'mean over all heads' if head is None else f'head {head}'}"
        trace = {"type": "heatmap", "z": shown, "zmin": 0, "zmax": 1, "colorscale": "Blues", "xgap": 1, "ygap": 1}
        return Figure(
            trace | {"hovertemplate": "%{y} → %{x}: %{z:.2f}<extra></extra>"},
            {
                "template": "plotly_white",
                "title": {"text": which},
                "xaxis": _axis(columns),
                "yaxis": _axis(rows) | {"autorange": "reversed"},
            },
        )


def _axis(tokens: Sequence[str]) -> dict[str, object]:
    """Return an axis with a token at each place, which may occur twice."""
    return {"tickvals": [*range(len(tokens))], "ticktext": tokens, "showgrid": False, "zeroline": False}


def _number(what: str, number: int, most: int) -> int:
    if not isinstance(number, Integral) or not 1 <= number <= most:
        raise UserError(f"{what}={number}: there are the {what}s 1 to {most}")
    return number


def read_attention(
    model: EncoderDecoder, tokenizer: Tokenizer, source: Sequence[int], target: Sequence[int]
) -> Attention:
    """Let a model read a source and a target, tokens without their ends, and return where it looks."""
    device = next(model.parameters()).device
    read, written = [*source, EOS], [BOS, *target]
    both = [torch.tensor([tokens], device=device) for tokens in (read, written)]
    seen = attention_weights(model, both[0], torch.ones_like(both[0], dtype=torch.bool), both[1])
    return Attention(
        tokenizer.source.subwords(read),
        tokenizer.target.subwords(written),
        {kind: [weights[0].float().cpu().numpy() for weights in layers] for kind, layers in seen.items() if layers},
    )
