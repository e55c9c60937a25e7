"""What one layer takes: operations counted, seconds measured, bytes that the backward pass needs."""

import statistics
import time
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from etude.inspect.complexity.layers import Layer


@dataclass(frozen=True)
class Cost:
    """Of a layer at one length and one width, for one sentence."""

    n: int
    d: int
    flops: int  # of a forward pass; a multiplication and an addition are two
    forward: float  # seconds, the median
    backward: float
    bytes: int  # kept for the backward pass, parameters left out


def count_flops(layer: nn.Module, length: int, width: int) -> int:
    """The matrix products of a forward pass of a layer on the meta device."""
    from torch.utils.flop_counter import FlopCounterMode  # which imports a compiler

    with torch.no_grad(), torch.device("meta"), FlopCounterMode(display=False) as counter:
        layer(torch.empty(1, length, width), torch.ones(1, length, dtype=torch.bool))
    flops: int = counter.get_total_flops()
    return flops


def count_saved_bytes(layer: nn.Module, x: Tensor, mask: Tensor) -> int:
    """What autograd keeps of a forward pass, parameters and the input left out; a storage counts once."""
    kept: dict[int, Tensor] = {}

    def keep(tensor: Tensor) -> Tensor:
        return kept.setdefault(tensor.untyped_storage()._cdata, tensor)

    with torch.autograd.graph.saved_tensors_hooks(keep, lambda one: one):
        layer(x, mask)
    known = {one.untyped_storage()._cdata for one in (*layer.parameters(), x)}
    return sum(one.untyped_storage().nbytes() for key, one in kept.items() if key not in known)


def measure(layers: Sequence[Layer], lengths: Sequence[int], widths: Sequence[int], repeats: int) -> list[list[Cost]]:
    """The costs of each layer, in the order of lengths and then of widths.

    Everything is timed once before anything is timed again, so that a slow minute of the machine slows all alike; a
    first round is left out.
    """
    sizes = [(n, d) for n in lengths for d in widths]
    built = {(layer.name, d): layer.build(d) for layer in layers for d in widths}
    seconds: dict[tuple[str, int, int], list[tuple[float, float]]] = {}
    for _ in range(repeats + 1):
        for layer in layers:
            for n, d in sizes:
                seconds.setdefault((layer.name, n, d), []).append(_time(built[layer.name, d], n, d))
    return [
        [_cost(layer, built[layer.name, d], n, d, seconds[layer.name, n, d][1:]) for n, d in sizes] for layer in layers
    ]


def _cost(layer: Layer, built: nn.Module, n: int, d: int, seconds: list[tuple[float, float]]) -> Cost:
    forward, backward = (statistics.median(one) for one in zip(*seconds, strict=True))
    flops = count_flops(layer.build(d, "meta"), n, d)
    return Cost(n, d, flops, forward, backward, count_saved_bytes(built, *_sentence(n, d)))


def _time(layer: nn.Module, n: int, d: int) -> tuple[float, float]:
    """Seconds of a forward and of a backward pass."""
    x, mask = _sentence(n, d)
    started = time.perf_counter()
    y = layer(x, mask)
    between = time.perf_counter()
    y.sum().backward()
    return between - started, time.perf_counter() - between


def _sentence(n: int, d: int) -> tuple[Tensor, Tensor]:
    return torch.randn(1, n, d, requires_grad=True), torch.ones(1, n, dtype=torch.bool)
