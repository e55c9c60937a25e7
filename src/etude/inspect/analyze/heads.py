"""The heads of a model from outside: silencing one, and watching where all of them look.

Both hang on to the model by hooks for as long as they are needed. It does not know that it is analysed, and comes out
as it went in.
"""

from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any, cast

from torch import Tensor, nn

from etude.model.attention import MultiHeadAttention
from etude.model.backend import weights
from etude.model.block import DecoderLayer, EncoderLayer
from etude.model.transformer import Transformer


@dataclass(frozen=True)
class Place:
    """One attention of a model.

    Attributes:
        kind: "encoder", "decoder" (self-attention there) or "cross" (from decoder to encoder).
        layer: from 1.
        attention: with its H heads of queries.
    """

    kind: str
    layer: int
    attention: MultiHeadAttention


KINDS = ("encoder", "decoder", "cross")


def places(model: Transformer) -> list[Place]:
    """Every attention of the model: the encoder's, the decoder's, then those from decoder to encoder."""
    encoder = enumerate(cast(Iterable[EncoderLayer], model.encoder), start=1)
    decoder = list(enumerate(cast(Iterable[DecoderLayer], model.decoder), start=1))
    return [
        *(Place("encoder", n, layer.attention) for n, layer in encoder),
        *(Place("decoder", n, layer.attention) for n, layer in decoder),
        *(Place("cross", n, layer.cross_attention) for n, layer in decoder),
    ]


@contextmanager
def silence_head(attention: MultiHeadAttention, head: int) -> Iterator[None]:
    """What a head (from 0) has read is zero on its way to W_O: as if its rows of W_O were zero."""
    d_v = attention.out_proj.in_features // attention.heads

    def silence(module: nn.Module, inputs: tuple[Tensor]) -> Tensor:
        read = inputs[0].clone()  # (B, T, H V)
        read[..., head * d_v : (head + 1) * d_v] = 0.0
        return read

    with _hooked(attention.out_proj, silence):
        yield


@contextmanager
def watch_heads(model: Transformer, see: Callable[[Place, Tensor], None]) -> Iterator[None]:
    """`see` is told the weights (B, H, T, S) of every attention as it is computed, whichever kernel computes it."""

    def watcher(place: Place) -> Callable[..., None]:
        def watch(module: nn.Module, inputs: tuple[Any, ...]) -> None:
            queries, keys, _, mask, bias = inputs
            see(place, weights(queries, keys, mask, bias))

        return watch

    with ExitStack() as stack:
        for place in places(model):
            stack.enter_context(_hooked(place.attention.backend, watcher(place)))
        yield


@contextmanager
def _hooked(module: nn.Module, hook: Callable[..., Any]) -> Iterator[None]:
    """The hook sees, and may replace, what goes into `module`."""
    handle = module.register_forward_pre_hook(hook)
    try:
        yield
    finally:
        handle.remove()
