"""The heads of a model from outside: silencing one, and watching where all of them look.

Both hang on to the model by hooks for as long as they are needed. It does not know that it is analysed, and comes out
as it went in.
"""

import re
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any

from torch import Tensor, nn

from etude.inspect.analyze.subject import Subject, Text
from etude.inspect.analyze.sums import Sums, change
from etude.model.attention import MultiHeadAttention
from etude.model.backend import weights
from etude.model.encoder_decoder import EncoderDecoder


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


def places(model: EncoderDecoder) -> list[Place]:
    """Every attention of the model: the encoder's, the decoder's, then those across; none of what is not étude's."""
    found = []
    for name, module in model.named_modules():
        layer = re.match(r"(encoder|decoder)\.layers\.(\d+)\.", name)
        if layer and isinstance(module, MultiHeadAttention):
            found.append(Place("cross" if module.is_cross else layer[1], int(layer[2]) + 1, module))
    return sorted(found, key=lambda place: KINDS.index(place.kind))


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
def watch_heads(model: EncoderDecoder, see: Callable[[Place, Tensor], None]) -> Iterator[None]:
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


def score_removals(
    subject: Subject, text: Text, intact: Sums, *, with_bleu: bool, seed: int
) -> Iterator[dict[str, Any]]:
    """For each head of each attention, the perplexity without it and how much that is more (Michel et al. 2019).

    Args:
        subject, text: what is asked, and on which sentences.
        intact: of the whole model on that text.
        with_bleu: also translate without each head, which takes much longer.
        seed: of the interval's draws.
    """
    for place in places(subject.model):
        for head in range(place.attention.heads):
            with silence_head(place.attention, head):
                without = subject.likelihoods(text)
                bleu = subject.translations(text).score if with_bleu else None
            of_head = {"attention": place.kind, "layer": place.layer, "head": head + 1, "perplexity": without.score}
            yield of_head | change(intact, without, seed) | {"bleu": bleu}
