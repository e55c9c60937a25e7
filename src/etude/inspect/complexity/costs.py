"""The cost of one layer: FLOPs, measured seconds, and bytes that are saved for the backward pass."""

import statistics
import time
from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor, nn

from etude.inspect.complexity.layers import Layer
from etude.tasks.counted import count_saved_bytes


def count_flops(layer: nn.Module, length: int, width: int) -> int:
    """Count the FLOPs of the matrix products in a forward pass of a layer on the meta device."""
    from torch.utils.flop_counter import FlopCounterMode  # imported late: it imports a compiler

    with torch.no_grad(), torch.device("meta"), FlopCounterMode(display=False) as counter:
        layer(torch.empty(1, length, width), torch.ones(1, length, dtype=torch.bool))
    flops: int = counter.get_total_flops()
    return flops


def measure_costs(layer: Layer, cells: Sequence[Mapping[str, int]], repeats: int) -> list[dict[str, Any]]:
    """Measure the cost of a layer for one sentence at each of several sizes.

    Every cell is timed once before any is timed again, so that a slow minute of the machine affects all of them. The
    first round is a warm-up and does not count.

    Args:
        layer: the layer to measure.
        cells: the sizes: n, d, and k or r if the layer has one.
        repeats: how often each cell is timed.

    Returns:
        For each cell its sizes; `flops` of a forward pass, a multiplication and an addition counted as two; `forward`
        and `backward`, median seconds; `bytes` saved for the backward pass, without parameters.
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
        x, mask = _sentence(n, d)
        _, kept = count_saved_bytes(one, (x, mask), x)
        found.append({**sizes, "flops": flops, "forward": forward, "backward": backward, "bytes": kept})
    return found


def _time(layer: nn.Module, n: int, d: int) -> tuple[float, float]:
    """Time a forward and a backward pass, in seconds."""
    x, mask = _sentence(n, d)
    started = time.perf_counter()
    y = layer(x, mask)
    between = time.perf_counter()
    y.sum().backward()
    return between - started, time.perf_counter() - between


def _sentence(n: int, d: int) -> tuple[Tensor, Tensor]:
    return torch.randn(1, n, d, requires_grad=True), torch.ones(1, n, dtype=torch.bool)
