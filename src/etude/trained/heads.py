"""Where a model's heads look: their attention weights, read by forward hooks that are removed afterwards."""

import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from etude.model.alignment import Alignment
from etude.model.attention import MultiHeadAttention
from etude.model.backend import weights
from etude.model.modular import ZeroSink
from etude.model.recurrent import RecurrentDecoder


@dataclass(frozen=True)
class Place:
    """An attention module of a model, or the alignment of a recurrent decoder.

    Attributes:
        kind: "encoder", "decoder" (self-attention there) or "cross" (from decoder to encoder).
        layer: its layer, from 1; where layers have several of a kind, they are counted one after the other.
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
    found: list[Place] = []
    for name, module in model.named_modules():
        stack = re.match(r"(encoder|decoder)\.layers\.", name)
        if isinstance(module, MultiHeadAttention) and stack:
            kind = "cross" if module.is_cross else stack[1]
            layer = 1 + sum(place.kind == kind for place in found)
            output, heads = module.out_proj, module.heads
            found.append(Place(kind, layer, module, heads, output, output.in_features // heads))
        elif isinstance(module, RecurrentDecoder) and isinstance(module.alignment, Alignment):
            output = module.alignment.join  # its input is the context, followed by the decoder's state
            found.append(Place("cross", 1, module, 1, output, output.in_features // 2))
    return sorted(found, key=lambda place: KINDS.index(place.kind))


def has_sink(place: Place) -> bool:
    """Return whether a head may look at no key, so that its weights sum to less than one."""
    return isinstance(getattr(place.attention, "sink", None), ZeroSink)


def readable(model: nn.Module) -> list[Place]:
    """List the places where tokens look at tokens: not those in an encoder that leaves fewer positions, or to it."""
    shortens = hasattr(getattr(model, "encoder", None), "memory_mask")
    return [place for place in places(model) if place.kind == "decoder" or not shortens]


@contextmanager
def watch_heads(model: nn.Module, see: Callable[[Place, Tensor], None]) -> Iterator[None]:
    """Call `see` with the weights (B, H, T, S) of every readable attention when any backend computes it.

    What a head gives to a sink is left out.
    """
    with ExitStack() as stack:
        for place in readable(model):
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
        found = weights(queries, keys, mask, bias)
        see(place, found[..., :-1] if has_sink(place) else found)

    return watch


@torch.no_grad()
def attention_weights(
    model: nn.Module, source: Tensor, source_mask: Tensor, target_in: Tensor, kinds: Sequence[str] = KINDS
) -> dict[str, list[Tensor]]:
    """Compute the attention weights of a batch: for each kind a list by layer of (B, H, T, S).

    A kind that the model does not have, one whose positions are not tokens, and an attention of the user's own whose
    weights cannot be read, has no layers.

    Args:
        model: in evaluation mode.
        source, source_mask, target_in: its input, (B, S), (B, S) and (B, T).
        kinds: which are kept.
    """
    seen: dict[str, list[Tensor]] = {kind: [] for kind in kinds}

    def see(place: Place, weights: Tensor) -> None:
        if place.kind in seen:
            seen[place.kind].append(weights)

    with watch_heads(model, see):
        model(source, source_mask, target_in)
    return seen
