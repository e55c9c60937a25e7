"""What one layer takes: operations counted, seconds measured, bytes that the backward pass needs."""

import statistics
import time
from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor, nn

from etude.inspect.complexity.layers import Layer


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


def measure_costs(layer: Layer, cells: Sequence[Mapping[str, int]], repeats: int) -> list[dict[str, Any]]:
    """What a layer costs at each of some sizes, for one sentence.

    Every cell is timed once before any is timed again, so that a slow minute of the machine slows all alike; a first
    round is left out.

    Args:
        layer: any.
        cells: n, d, and k or r where the layer has one.
        repeats: how often each is timed.

    Returns:
        Of each cell its sizes; `flops` of a forward pass, where a multiplication and an addition are two; `forward` and
        `backward`, the medians of the seconds; `bytes` kept for the backward pass, parameters left out.
    """
    built = [layer.build(sizes) for sizes in cells]
    rounds = [
        [_time(one, sizes["n"], sizes["d"]) for one, sizes in zip(built, cells, strict=True)]
        for _ in range(repeats + 1)
    ]
    found = []
    for one, sizes, seconds in zip(built, cells, zip(*rounds[1:], strict=True), strict=True):
        n, d = sizes["n"], sizes["d"]
        forward, backward = (statistics.median(times) for times in zip(*seconds, strict=True))
        flops = count_flops(layer.build(sizes, "meta"), n, d)
        kept = count_saved_bytes(one, *_sentence(n, d))
        found.append({**sizes, "flops": flops, "forward": forward, "backward": backward, "bytes": kept})
    return found


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
