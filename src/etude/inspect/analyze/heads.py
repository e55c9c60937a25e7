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
from etude.model.alignment import Alignment
from etude.model.attention import MultiHeadAttention
from etude.model.backend import weights
from etude.model.recurrent import RecurrentDecoder


@dataclass(frozen=True)
class Place:
    """One attention of a model, or the alignment of a recurrent decoder.

    Attributes:
        kind: "encoder", "decoder" (self-attention there) or "cross" (from decoder to encoder).
        layer: from 1.
        attention: the module.
        heads: H, of queries.
        output: the matrix that reads what the heads have read, one head's V numbers after the other's.
        width: V.
    """

    kind: str
    layer: int
    attention: nn.Module
    heads: int
    output: nn.Linear
    width: int


KINDS = ("encoder", "decoder", "cross")


def places(model: nn.Module) -> list[Place]:
    """Every attention of the model: the encoder's, the decoder's, then those across; none of what is not étude's."""
    found = []
    for name, module in model.named_modules():
        if isinstance(module, MultiHeadAttention):
            stack = re.match(r"(encoder|decoder)\.layers\.(\d+)\.", name)
            kind, layer = ("cross" if module.is_cross else stack[1], int(stack[2]) + 1) if stack else ("", 0)
            output, heads = module.out_proj, module.heads
            found.append(Place(kind, layer, module, heads, output, output.in_features // heads))
        elif isinstance(module, RecurrentDecoder) and isinstance(module.alignment, Alignment):
            output = module.alignment.join  # of the context, then of the state, which is no head's
            found.append(Place("cross", 1, module, 1, output, output.in_features // 2))
    return sorted((place for place in found if place.kind), key=lambda place: KINDS.index(place.kind))


@contextmanager
def silence_head(place: Place, head: int) -> Iterator[None]:
    """What a head (from 0) has read is zero on its way to W_O: as if its rows of W_O were zero."""

    def silence(module: nn.Module, inputs: tuple[Tensor]) -> Tensor:
        read = inputs[0].clone()  # (B, T, H V), or more behind it
        read[..., head * place.width : (head + 1) * place.width] = 0.0
        return read

    with _hook_inputs(place.output, silence):
        yield


@contextmanager
def watch_heads(model: nn.Module, see: Callable[[Place, Tensor], None]) -> Iterator[None]:
    """`see` is told the weights (B, H, T, S) of every attention as it is computed, whichever kernel computes it."""
    with ExitStack() as stack:
        for place in places(model):
            watched = getattr(place.attention, "watched", None)
            if watched:  # the weights themselves pass through here
                stack.enter_context(_hook_inputs(watched, lambda module, inputs, place=place: see(place, inputs[0])))
            else:
                stack.enter_context(_hook_inputs(place.attention.backend, _weigh(place, see)))  # type: ignore[arg-type]
        yield


def _weigh(place: Place, see: Callable[[Place, Tensor], None]) -> Callable[..., None]:
    """What a backend is about to read with, for one that never keeps its weights."""

    def watch(module: nn.Module, inputs: tuple[Any, ...]) -> None:
        queries, keys, _, mask, bias = inputs
        see(place, weights(queries, keys, mask, bias))

    return watch


@contextmanager
def _hook_inputs(module: nn.Module, hook: Callable[..., Any]) -> Iterator[None]:
    """The hook sees, and may replace, what goes into `module`."""
    handle = module.register_forward_pre_hook(hook)
    try:
        yield
    finally:
        handle.remove()


def score_removals(
    subject: Subject, text: Text, intact: Sums, *, translated: bool, seed: int
) -> Iterator[dict[str, Any]]:
    """For each head of each attention, the perplexity without it and how much that is more (Michel et al. 2019).

    Args:
        subject, text: what is asked, and on which sentences.
        intact: of the whole model on that text.
        translated: whether to translate without each head too, which takes much longer.
        seed: of the interval's draws.
    """
    for place in places(subject.model):
        for head in range(place.heads):
            with silence_head(place, head):
                without = subject.likelihoods(text)
                score = subject.translations(text).score if translated and subject.metric else None
            of_head = {"attention": place.kind, "layer": place.layer, "head": head + 1, "perplexity": without.score}
            yield of_head | change(intact, without, seed) | ({subject.metric: score} if subject.metric else {})
