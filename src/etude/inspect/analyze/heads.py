"""Ablate single heads of a model, and observe the attention weights of all of them.

Both use forward hooks that are removed afterwards; the model itself is not changed.
"""

import re
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any

from torch import Tensor, nn
from torch.utils.hooks import RemovableHandle

from etude.inspect.analyze.subject import Subject, Text
from etude.inspect.analyze.sums import Sums, change
from etude.model.alignment import Alignment
from etude.model.attention import MultiHeadAttention
from etude.model.backend import weights
from etude.model.recurrent import RecurrentDecoder


@dataclass(frozen=True)
class Place:
    """An attention module of a model, or the alignment of a recurrent decoder.

    Attributes:
        kind: "encoder", "decoder" (self-attention there) or "cross" (from decoder to encoder).
        layer: its layer, from 1.
        attention: the module.
        heads: H, of queries.
        output: the output projection; its input is the concatenation of the heads' outputs.
        width: d_v, the size of a head's output.
    """

    kind: str
    layer: int
    attention: nn.Module
    heads: int
    output: nn.Linear
    width: int


KINDS = ("encoder", "decoder", "cross")


def places(model: nn.Module) -> list[Place]:
    """List every attention module of the model: in the encoder, in the decoder, then cross-attention.

    Attention classes that are not étude's are not found.
    """
    found = []
    for name, module in model.named_modules():
        if isinstance(module, MultiHeadAttention):
            stack = re.match(r"(encoder|decoder)\.layers\.(\d+)\.", name)
            kind, layer = ("cross" if module.is_cross else stack[1], int(stack[2]) + 1) if stack else ("", 0)
            output, heads = module.out_proj, module.heads
            found.append(Place(kind, layer, module, heads, output, output.in_features // heads))
        elif isinstance(module, RecurrentDecoder) and isinstance(module.alignment, Alignment):
            output = module.alignment.join  # its input is the context, followed by the decoder's state
            found.append(Place("cross", 1, module, 1, output, output.in_features // 2))
    return sorted((place for place in found if place.kind), key=lambda place: KINDS.index(place.kind))


def silence_head(place: Place, head: int) -> RemovableHandle:
    """Set the output of a head (from 0) to zero before W_O, as if its rows of W_O were zero, within the context."""

    def silence(module: nn.Module, inputs: tuple[Tensor]) -> Tensor:
        outputs = inputs[0].clone()  # (B, T, H d_v), or longer for an alignment
        outputs[..., head * place.width : (head + 1) * place.width] = 0.0
        return outputs

    return place.output.register_forward_pre_hook(silence)


@contextmanager
def watch_heads(model: nn.Module, see: Callable[[Place, Tensor], None]) -> Iterator[None]:
    """Call `see` with the weights (B, H, T, S) of every attention as it is computed, whichever backend computes it."""
    with ExitStack() as stack:
        for place in places(model):
            watched = getattr(place.attention, "watched", None)
            if watched:  # a module that passes the weights themselves through
                hook = watched.register_forward_pre_hook(lambda module, inputs, place=place: see(place, inputs[0]))
            else:
                hook = place.attention.get_submodule("backend").register_forward_pre_hook(_weights_hook(place, see))
            stack.enter_context(hook)
        yield


def _weights_hook(place: Place, see: Callable[[Place, Tensor], None]) -> Callable[..., None]:
    """Make a hook that computes the weights from a backend's inputs, for backends that do not store them."""

    def watch(module: nn.Module, inputs: tuple[Any, ...]) -> None:
        queries, keys, _, mask, bias = inputs
        see(place, weights(queries, keys, mask, bias))

    return watch


def score_removals(
    subject: Subject, text: Text, intact: Sums, *, translated: bool, seed: int
) -> Iterator[dict[str, Any]]:
    """Yield, for each head of each attention, the perplexity without it and its change (Michel et al. 2019).

    Args:
        subject: the run.
        text: the sentences.
        intact: likelihoods of the whole model on `text`.
        translated: whether to translate without each head too, which takes much longer.
        seed: of the bootstrap for the interval.
    """
    for place in places(subject.model):
        for head in range(place.heads):
            with silence_head(place, head):
                without = subject.likelihoods(text)
                score = subject.translations(text).score if translated and subject.metric else None
            of_head = {"attention": place.kind, "layer": place.layer, "head": head + 1, "perplexity": without.score}
            yield of_head | change(intact, without, seed) | ({subject.metric: score} if subject.metric else {})
